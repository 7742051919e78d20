"""The scoring engine: log-probabilities of token sequences under any causal language model.

=================  ================================================================================
module             idea
=================  ================================================================================
`contract`         `Scorer`: all that the rest of the project knows of a model
`loading`          weights and tokenizer: hub id, local directory or GGUF; precision and placement
`local`            `TransformersScorer`: a model that runs here
`windows`          long sequences in overlapping windows, every token scored exactly once
`batching`         longest first, within a budget of tokens, smaller when memory runs out
`head`             hidden states to log-probabilities without a [tokens, vocabulary] matrix
`prefix`           many continuations of one prefix, which is read once
`packing`          how such continuations lie in one row, each blind to the others
`suitability`      what a network must prove before its numbers are believed
`load_errors`      what loading raises, told in one line
`endpoint`         `EndpointScorer`: a model behind an OpenAI-compatible completions endpoint; its
                   parts are `endpoint_address`, `endpoint_client`, `endpoint_answers`,
                   `endpoint_protocol` and `endpoint_route`
`cost`             tokens, FLOPs and time, predicted and measured
`queue`            one queue of work for all processes, on all nodes
=================  ================================================================================
"""
