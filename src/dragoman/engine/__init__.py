"""Who runs the model: one interface (engine), two engines, and the choice between them (auto).

    torch_engine            the reference, with every search feature
    ctranslate2_engine      the fast one; ctranslate2_search makes it agree with the reference
    convert                 a bundle for CTranslate2: spec says how, probe checks the outcome
    batching                batches by token budget
"""
