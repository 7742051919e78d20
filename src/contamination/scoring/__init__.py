"""Log-probabilities of tokens under any causal language model, scored once and stored.

Rooms above (audit, membership, pretraining, experiments, report, cli) call `score.score` for a full
store, `local.TransformersScorer` or `endpoint.EndpointScorer` for a model, and `plan.plan_store`
for the store that a test reads; `contract.Scorer` is all that they know of a model.

======================  ===============================================================
module                  idea
======================  ===============================================================
`contract`              `Scorer`: a model as a function from tokens to log-probabilities
`models`                the registry of models that an audit can name
`loading`               weights and tokenizer: hub id, directory or GGUF; one-line errors
`local`                 `TransformersScorer`: a model that runs here
`windows`               overlapping windows, every token scored once; batches of them
`head`                  hidden states to log-probabilities; what a network must prove
`prefix`                many continuations of one prefix, which is read once
`endpoint`              `EndpointScorer`: a model behind a server; how to ask it and read answers
`endpoint_client`       requests: tries, waits, limits, budget and key
`endpoint_trust`        whether answers are one model's, about the tokens sent; their noise
`plan`, `cost`          which store a test reads, how many shards; tokens, FLOPs, time
`score`                 fill a store with what is missing, in one process or several
`processes`             the processes of one run, and where they meet
`store`                 read a store: what every statistic starts from
`store_sums`            sums in the place of tokens, for a store that travels
`store_format`          what a store holds, and its parts on disk
`status`                one line for a model or set that cannot be had
======================  ===============================================================
"""
