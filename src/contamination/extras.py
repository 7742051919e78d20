"""The extra of the distribution that brings a package.

`pip install contamination` is the core alone. The core computes statistics and p-values
of stored log-probabilities. Models, data sets of the hub, endpoints and the beacons of
seals need packages that not everybody wants.
"""

# Name of a package, as Python imports it -> the extra of pyproject.toml that brings it.
EXTRAS = {
    "accelerate": "models",
    "anyio": "endpoint",
    "cryptography": "seal",
    "datasets": "hub",
    "gguf": "models",
    "httpx2": "endpoint",
    "huggingface_hub": "hub",
    "py_ecc": "seal",
    "requests": "hub",
    "rfc3161_client": "seal",
    "safetensors": "models",
    "sklearn": "models",
    "torch": "models",
    "tqdm": "models",
    "transformers": "models",
}


def advice_on_missing(error: ModuleNotFoundError) -> str | None:
    """Return a line that names the extra to install.

    It is None if no extra brings the missing module.
    """
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    folder = "in the folder of this project"
    return f"{package} is not installed: pip install '.[{extra}]', or '.[all]', {folder}"
