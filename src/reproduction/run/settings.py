"""Settings of a notebook: the parameters on which its passes over models depend.

Each notebook that makes passes has a model of its own, `Settings` of its package. The
stage that makes the passes fills it from the profile; the notebook fills it from its
parameters cell, reads the tables that were measured with equal settings, and passes it
on.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict


class NotebookSettings(BaseModel):
    """Base of the settings of a notebook; an unknown or missing parameter is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> "NotebookSettings":
        """Return the settings among all parameters of a notebook."""
        own = {name: value for name, value in parameters.items() if name in cls.model_fields}
        return cls.model_validate(own)
