"""The ids and the size of the tiny models of the tests."""

BOS, PAD, EOS, END_OF_DOCUMENT = 0, 1, 2, 49
TINY = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "max_position_embeddings": 128,
    "scale_embedding": True,
}
