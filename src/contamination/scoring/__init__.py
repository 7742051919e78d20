"""Log-probabilities of tokens under any causal language model, scored once and stored.

`score.score` fills a store, `local.TransformersScorer` and `endpoint.EndpointScorer`
are models, and `plan.plan_store` names the store that a test reads.

=============================  =========================================================
module                         idea
=============================  =========================================================
`contract`                     `Scorer`: a model as a function from tokens to
                               log-probabilities
`models`                       the models that an audit can name
`model_source`, `loading`      where a model comes from; its weights and tokenizer
`configuration`                its kind, context and size, by its configuration
`checkpoint`, `unpacking`      files that stay the same; GGUF files unpacked once
`load_errors`                  one line for a model that cannot be loaded
`local`, `head`                `TransformersScorer`: a model that runs here; its output
                               layer
`windows`, `room`              long sequences in batches; what fits into memory
`prefix`, `shared_keys`        many continuations of one prefix, which is read once
`agreement`                    up to which size that gives the same numbers
`endpoint`                     `EndpointScorer`: a model behind a server; how to ask it
`endpoint_client`              requests: tries, waits, limits, budget and key
`endpoint_refusals`            what servers say, and which refusals last
`redaction`                    the key, struck out of what servers say
`endpoint_trust`               whether answers are one model's, about the tokens sent;
                               their noise
`generation`, `completions`    text instead: `Generator`, here or behind a server; the
                               store of texts
`inspect_scorer`               a scorer of Inspect: log-probabilities that its provider
                               gives
`plan`, `cost`                 which store a test reads, how many shards; tokens, FLOPs
`speed`, `pace`                how long scoring takes here, from samples of the work, or
                               from an earlier run
`score`, `job`                 fill a store with what is missing: what is read, and the
                               steps
`readers`                      how the sequences of each kind are read
`token_groups`                 variants of records as tokens
`work`, `run_record`           parts of the work and their order; the record of a run
`processes`, `status`          the processes of one run; why a model or a set is unavailable
`store`, `stores`              open, create and sum stores; a class for each kind
`store_format`                 the header and the parts of a store on disk
`store_checks`                 whether a store is the one that is wanted
=============================  =========================================================
"""
