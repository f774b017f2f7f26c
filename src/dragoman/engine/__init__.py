"""Who runs the model. Ids in, ids out, one interface.

    engine                `Engine`, and what goes in and comes out
    auto                  `open_engine`: CTranslate2, with torch for what it lacks
    ensemble              several models as one: torch asks all at every step, else the first proposes and all judge;
                          and models with examples
    ctranslate2_engine    the default: int8 on plain CPUs, without torch
    ctranslate2_search    how its results are made those of the reference
    torch_engine          the reference, which can do all that `search` can
    convert               a bundle for CTranslate2: spec (the layout), probe (is it still the same model?)
    batching              sources of like length together
    alignment             which attention is read as an alignment

Importing this room loads neither torch nor CTranslate2.
"""
