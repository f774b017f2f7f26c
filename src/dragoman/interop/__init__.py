"""At home elsewhere: models of other toolkits in, our models out.

marian_import         a transformers MarianMTModel folder, OPUS-MT's for one, becomes a model folder
marian_config         their settings and ours; marian_weights their weights and ours
checkpoint_file       weights from files that may be damaged, or worse
export                a model for elsewhere, checked and put in place
marian_export         for transformers; sentencepiece_model has our pieces in SentencePiece's form
ctranslate2_export    for CTranslate2
onnx_export           for ONNX; onnx_runner runs it
parity                how much two models agree on probe_texts; torch_runner is our own side
publish               a model folder on a hub
"""
