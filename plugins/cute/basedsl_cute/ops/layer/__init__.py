"""The rest of a transformer's layer: norms, rotary embedding, gates, losses, sampling."""
