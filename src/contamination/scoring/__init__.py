"""Log-probabilities of tokens under any causal language model, scored once and stored.

`score.score` fills a store, `local.TransformersScorer` and `endpoint.EndpointScorer` are models,
and `plan.plan_store` names the store that a test reads.

=======================  ===============================================================
module                   idea
=======================  ===============================================================
`contract`               `Scorer`: a model as a function from tokens to log-probabilities
`models`, `loading`      the models that an audit can name; weights and tokenizer
`local`                  `TransformersScorer`: a model that runs here, its output layer
`windows`                long sequences in batches
`prefix`                 many continuations of one prefix, which is read once
`endpoint`               `EndpointScorer`: a model behind a server; how to ask it
`endpoint_client`        requests: tries, waits, limits, budget and key
`endpoint_trust`         whether answers are one model's, about the tokens sent; their noise
`generation`             text instead: `Generator`, here or behind a server; the store of texts
`inspect_scorer`         a scorer of Inspect: log-probabilities that its provider gives
`plan`, `cost`           which store a test reads, how many shards; tokens, FLOPs, time
`score`                  fill a store with what is missing
`processes`, `status`    the processes of one run; one line for what cannot be had
`store`, `store_format`  read a store: what every statistic starts from; its parts on disk
=======================  ===============================================================
"""
