"""Models that learn, written once for all four backends, as a user would.

A program takes the name of a backend, a dtype and whether to compile, and returns its final
numbers. Nothing in it asks which backend it runs on.
"""

import numpy as np

import isomorph as iso


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


# ---- variational autoencoder: a random key in the model's state, iso.fit -------------------------

PIXELS = (numbers(0, 12, 6) > 0).astype(np.float64)


class VAE(iso.Module):
    def __init__(self):
        self.encoder = iso.Linear(6, 5)
        self.mean = iso.Linear(5, 2)
        self.log_var = iso.Linear(5, 2)
        self.decoder = iso.Sequential(iso.Linear(2, 5), iso.Activation("silu"), iso.Linear(5, 6))
        self.key = iso.State(iso.random.key(3))

    def forward(self, x):
        xp = iso.namespace(x)
        hidden = iso.silu(self.encoder(x))
        mean, log_var = self.mean(hidden), self.log_var(hidden)
        keys = iso.random.split(self.key.value)
        self.key.value = keys[0]
        noise = iso.random.normal(keys[1], mean.shape, dtype=mean.dtype)
        return self.decoder(mean + xp.exp(log_var / 2) * noise), mean, log_var


def negative_elbo(model, x):
    xp = iso.namespace(x)
    logits, mean, log_var = model(x)
    missed = iso.binary_cross_entropy(logits, x, reduction="sum")
    divergence = 0.5 * xp.sum(mean**2 + xp.exp(log_var) - 1 - log_var)
    return (missed + divergence) / x.shape[0]


def vae(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype), iso.use_key(0):
        model = VAE()
    x = iso.convert(PIXELS.astype(dtype), backend)
    done = iso.fit(
        model,
        (x,),
        negative_elbo,
        iso.optimizers.adam(1e-2),
        epochs=2,
        batch_size=4,
        shuffle=False,
        compiled=compiled,
        progress=False,
    )
    return {"losses": done.losses, "v": done.model.v, "key": done.model.key.value}


# ---- generative adversarial network: two models, two optimizers, one compiled step ---------------

REAL = numbers(1, 8, 2) * 0.5 + 2.0
DESCENT = iso.optimizers.adam(1e-2, beta1=0.5)


def network(before, hidden, after):
    return iso.Sequential(
        iso.Linear(before, hidden),
        iso.Activation(iso.leaky_relu, alpha=0.2),
        iso.Linear(hidden, after),
    )


def judged(critic, x, label):
    """The loss of a critic that should give all rows of x this label."""
    logits = critic(x)
    return iso.binary_cross_entropy(logits, label * iso.namespace(x).ones_like(logits))


def critic_loss(critic, generator, real, noise):
    made = iso.stop_gradient(generator(noise))
    return judged(critic, real, 1.0) + judged(critic, made, 0.0)


def generator_loss(generator, critic, noise):
    return judged(critic, generator(noise), 1.0)


def gan_step(models, states, real, key):
    generator, critic = models
    noise = iso.random.normal(key, (8, 3), dtype=real.dtype)
    d_loss, grads = iso.value_and_grad(critic_loss)(critic, generator, real, noise)
    updates, d_state = DESCENT.update(grads, states[1], critic)
    critic = iso.apply_updates(critic, updates)
    g_loss, grads = iso.value_and_grad(generator_loss)(generator, critic, noise)
    updates, g_state = DESCENT.update(grads, states[0], generator)
    generator = iso.apply_updates(generator, updates)
    return (generator, critic), (g_state, d_state), (g_loss, d_loss)


def gan(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype), iso.use_key(1):
        models = network(3, 4, 2), network(2, 4, 1)
        keys = iso.random.split(iso.random.key(5), 4)
    states = tuple(DESCENT.init(model) for model in models)
    real = iso.convert(REAL.astype(dtype), backend)
    step = iso.jit(gan_step) if compiled else gan_step
    losses = []
    for i in range(4):
        models, states, both = step(models, states, real, keys[i])
        losses.append(both)
    return {"losses": losses, "generator": models[0].v, "critic": models[1].v}


# ---- graph network: messages along edges, summed at the receivers --------------------------------

SENDERS = np.array([0, 1, 2, 3, 4, 5, 0, 2, 4, 1, 5, 5])
RECEIVERS = np.array([1, 2, 3, 4, 5, 0, 3, 5, 1, 1, 2, 2])  # node 2 receives node 5 twice
FEATURES = numbers(2, 6, 3)
CLASSES = np.array([0, 1, 2, 0, 1, 2])


class GraphNet(iso.Module):
    def __init__(self):
        self.first = iso.Linear(6, 4)
        self.second = iso.Linear(8, 4)
        self.head = iso.Linear(4, 3)

    def round(self, layer, x, senders, receivers):
        xp = iso.namespace(x)
        pairs = xp.concat([iso.at(x)[senders].get(), iso.at(x)[receivers].get()], axis=-1)
        messages = xp.tanh(layer(pairs))
        return iso.at(xp.zeros((x.shape[0], 4), dtype=x.dtype))[receivers].add(messages)

    def forward(self, x, senders, receivers):
        x = self.round(self.first, x, senders, receivers)
        return self.head(self.round(self.second, x, senders, receivers))


def node_loss(model, x, senders, receivers, labels):
    return iso.cross_entropy(model(x, senders, receivers), labels)


def graph_network(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype), iso.use_key(2):
        model = GraphNet()
    graph = iso.convert((FEATURES.astype(dtype), SENDERS, RECEIVERS, CLASSES), backend)
    step = iso.train_step(node_loss, iso.optimizers.sgd(0.1, momentum=0.9), compiled=compiled)
    state = step.init(model)
    losses = []
    for _ in range(4):
        state, loss = step(state, *graph)
        losses.append(loss)
    logits = state.model(*graph[:3])
    return {"losses": losses, "v": state.model.v, "logits": logits}


# ---- transformer: trained on whole sequences, decoding with a fixed-size cache -------------------

TOKENS = np.random.default_rng(3).integers(0, 7, (2, 6))
PLACES = 8  # the longest sequence


class Block(iso.Module):
    def __init__(self, width, heads):
        self.heads, self.each = heads, width // heads
        self.norm, self.norm2 = iso.LayerNorm(width), iso.RMSNorm(width)
        self.qkv = iso.Linear(width, 3 * width)
        self.out = iso.Linear(width, width)
        self.up, self.down = iso.Linear(width, 2 * width), iso.Linear(2 * width, width)

    def split(self, x):
        """Query, key and value, each [batch, heads, length, features]."""
        xp = iso.namespace(x)
        qkv = xp.reshape(self.qkv(x), (*x.shape[:2], 3, self.heads, self.each))
        return xp.unstack(xp.permute_dims(qkv, (2, 0, 3, 1, 4)))

    def join(self, x, y):
        xp = iso.namespace(x)
        x = x + self.out(xp.reshape(xp.permute_dims(y, (0, 2, 1, 3)), x.shape))
        return x + self.down(iso.gelu(self.up(self.norm2(x))))

    def forward(self, x, places):
        q, k, v = self.split(self.norm(x))
        q, k = (iso.rotary_embedding(a, positions=places) for a in (q, k))
        return self.join(x, iso.scaled_dot_product_attention(q, k, v, is_causal=True))

    def decode(self, x, cache, place):
        """Decode one token: write its key and value into the cache at `place`."""
        xp = iso.namespace(x)
        q, k, v = self.split(self.norm(x))
        here = xp.reshape(place, (1,))
        q, k = (iso.rotary_embedding(a, positions=here) for a in (q, k))
        here = (slice(None), slice(None), iso.span(place, 1))
        cache = {"k": iso.at(cache["k"])[here].set(k), "v": iso.at(cache["v"])[here].set(v)}
        mask = xp.arange(PLACES) <= place
        y = iso.scaled_dot_product_attention(q, cache["k"], cache["v"], mask=mask[None, :])
        return self.join(x, y), cache


class Transformer(iso.Module):
    def __init__(self):
        self.embedding = iso.Embedding(7, 8)
        self.blocks = [Block(8, 2)]
        self.norm, self.head = iso.LayerNorm(8), iso.Linear(8, 7)

    def forward(self, tokens):
        places = iso.namespace(tokens).arange(tokens.shape[1])
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, places)
        return self.head(self.norm(x))

    def decode(self, tokens, caches, place):
        x, after = self.embedding(tokens[:, None]), []
        for block, cache in zip(self.blocks, caches):
            x, cache = block.decode(x, cache, place)
            after.append(cache)
        return self.head(self.norm(x))[:, 0], after


def next_token_loss(model, tokens):
    return iso.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])


def decoded(model, tokens, caches):
    """Logits of each position, from a loop with a cache, and then two predicted tokens."""
    xp = iso.namespace(tokens)

    def given(carry, token):
        caches, place = carry
        logits, caches = model.decode(token, caches, place)
        return (caches, place + 1), logits

    start = xp.asarray(0)
    (caches, place), logits = iso.scan(given, (caches, start), xp.permute_dims(tokens, (1, 0)))

    def guess(i, carry):
        caches, logits, guesses = carry
        best = xp.argmax(logits, axis=-1)
        logits, caches = model.decode(best, caches, place + i)
        return caches, logits, iso.at(guesses)[:, i].set(best)

    guesses = xp.zeros((tokens.shape[0], 2), dtype=tokens.dtype)
    guesses = iso.fori_loop(0, 2, guess, (caches, logits[-1], guesses))[2]
    return xp.permute_dims(logits, (1, 0, 2)), guesses


def transformer(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype), iso.use_key(3):
        model = Transformer()
        caches = [{"k": iso.zeros((2, 2, PLACES, 4)), "v": iso.zeros((2, 2, PLACES, 4))}]
    tokens = iso.convert(TOKENS, backend)
    step = iso.train_step(next_token_loss, iso.optimizers.adamw(1e-2), compiled=compiled)
    state, losses = step.init(model), []
    for _ in range(3):
        state, loss = step(state, tokens)
        losses.append(loss)
    model = state.model
    logits, guesses = (iso.jit(decoded) if compiled else decoded)(model, tokens, caches)
    whole = model(tokens)
    return {"losses": losses, "logits": logits, "whole": whole, "guesses": guesses, "v": model.v}


# ---- REINFORCE: random walk episodes -------------------------------------------------------------


def episode(policy, key, places=5, steps=6):
    """A walk towards the right end of a line: states, actions and rewards of one episode."""
    xp = iso.namespace(policy)

    def step(state, key):
        action = iso.random.categorical(key, iso.at(policy)[state].get())
        after = xp.clip(state + 2 * action - 1, 0, places - 1)
        reward = xp.astype(after == places - 1, policy.dtype)
        return after, (state, action, reward)

    return iso.scan(step, xp.asarray(2), iso.random.split(key, steps))[1]


def surrogate(policy, keys):
    """Its gradient is the REINFORCE estimate, with the mean return as a baseline."""
    xp = iso.namespace(policy)
    states, actions, rewards = iso.vmap(lambda key: episode(policy, key))(keys)
    to_go = xp.flip(xp.cumulative_sum(xp.flip(rewards, axis=1), axis=1), axis=1)
    advantage = to_go - xp.mean(to_go, axis=0, keepdims=True)
    chances = iso.log_softmax(policy, axis=-1)
    taken = iso.at(chances)[states, actions].get()
    loss = -xp.mean(xp.sum(taken * iso.stop_gradient(advantage), axis=1))
    return loss, {"states": states, "actions": actions, "return": xp.mean(to_go[:, 0])}


def reinforce(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype):
        policy = iso.zeros((5, 2))
        keys = iso.random.split(iso.random.key(11), 3)
    step = iso.value_and_grad(surrogate, has_aux=True)
    step = iso.jit(step) if compiled else step
    found = []
    for i in range(3):
        (loss, seen), grad = step(policy, iso.random.split(keys[i], 4))
        found.append({"loss": loss, "grad": grad, "policy": policy, **seen})
        policy = policy - 0.5 * grad
    return {"steps": found, "policy": policy}
