"""TEXT -> IDS.

    corpus          pairs from TSV, two files, TMX (tmx) and JSON lines; lines and languages help
    doctor          checks before training -> diagnosis, doctor_report; its probes are sizes, repeats, characters, shift
    filter          which pairs are dropped, and why: one rule for doctor and training
    detect          which language a text is in, told from its words; language_names has what they are called
    holdout         a validation set that shares no sentence with the rest
    sentences       lossless splitting
    tokenizer       pieces; learning learns them, pipeline is how text is cut, merge_dropout is BPE-dropout
    lexicon         which words stand for which
    contractions    apostrophes that were left out
    known_words     the words that a model has met, and names that it has not; whole_words finds words in text
    dataset         ids on disk, memory mapped; chunks encodes in parallel, writing writes
    mixture         several corpora as one
    batches         token budget and length buckets; packing packs
    metrics         sacreBLEU's scores with their signatures
    suspect         signs of a bad translation: loops, copies, odd lengths

Nothing here imports torch.
"""
