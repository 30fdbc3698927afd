import { expect, test } from 'vitest';
import { EPOCH, failure, NO_SIGNAL, type Suite, wanted } from './forge-host.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** What every implementation has to do to open, adopt and change pull requests. */
export function describeOpening({ start, startWithPull }: Suite): void {
  test('opens a pull request, and returns it in the same form everywhere', async () => {
    const { forge, names, pull, head } = await startWithPull();
    expect(pull).toEqual({
      number: expect.any(Number),
      url: expect.stringMatching(/^http.*\/\d+$/),
      state: 'open',
      title: 'shop v1',
      body: 'A *proposal*:\n\n- ünï ✓ <!-- sluice -->\n',
      author: names.sluice,
      head: { branch: 'proposed/shop/v1', commit: head, isSameRepository: true },
      base: { branch: 'main' },
      labels: [],
      ...(pull.hasComments === undefined ? {} : { hasComments: false }),
      createdAt: expect.stringMatching(TIME),
      updatedAt: expect.stringMatching(TIME),
    });
    // A host may change it once more in the second after.
    expect(pull.createdAt <= pull.updatedAt).toBe(true);
    expect(await forge.get(pull.number, NO_SIGNAL)).toEqual(pull);
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([pull]);
    expect(await forge.listUpdated(EPOCH, 10, NO_SIGNAL)).toEqual([pull]);
  });

  test('adopts the open pull request of the two branches as it is, and none that is closed or has another base', async () => {
    const { forge, names, pull, setState, commit } = await startWithPull();
    const other = { ...wanted(), title: 'another title', body: 'another body' };
    expect(await forge.open(other, NO_SIGNAL)).toEqual(pull);
    await commit('release');
    const elsewhere = await forge.open({ ...wanted(), base: 'release' }, NO_SIGNAL);
    expect(elsewhere).toMatchObject({ base: { branch: 'release' }, state: 'open' });
    expect(elsewhere.number).not.toBe(pull.number);
    await setState(names.anna, pull.number, 'closed');
    const next = await forge.open(other, NO_SIGNAL);
    expect(next).toMatchObject({ title: 'another title', body: 'another body', state: 'open' });
    expect(next.number).not.toBe(pull.number);
  });

  test('opens it with labels where it can, and states whether it has comments, apart from reviews', async () => {
    const { forge, names, commit, comment, review, labels } = await start();
    await commit('proposed/shop/v1');
    const pull = await forge.open({ ...wanted(), labels: ['packages', 'two'] }, NO_SIGNAL);
    expect([...pull.labels].sort()).toEqual(forge.opensWithLabels ? ['packages', 'two'] : []);
    if (forge.opensWithLabels) expect(await labels()).toEqual(expect.arrayContaining(['packages', 'two']));
    await commit('proposed/shop/v2');
    const next = await forge.open({ ...wanted(), head: 'proposed/shop/v2', labels: ['two'] }, NO_SIGNAL);
    expect(next.labels).toEqual(forge.opensWithLabels ? ['two'] : []);

    await review(names.anna, pull.number, 'approve');
    const reviewed = await forge.get(pull.number, NO_SIGNAL);
    expect(reviewed).toMatchObject({ createdAt: pull.createdAt });
    await comment(names.anna, pull.number, 'a comment');
    expect((await forge.get(pull.number, NO_SIGNAL)).hasComments).not.toBe(false);
    const [listed] = (await forge.listUpdated(EPOCH, 10, NO_SIGNAL)).filter(({ number }) => number === pull.number);
    expect(listed?.hasComments).not.toBe(false);
  });

  test('processes that open it at the same time get one pull request', async () => {
    const { forge, connect, commit } = await start();
    await commit('proposed/shop/v1');
    const others = await Promise.all([connect({}), connect({})]);
    const opened = await Promise.all([forge, ...others].map((one) => one.open(wanted(), NO_SIGNAL)));
    expect(new Set(opened.map(({ number }) => number)).size).toBe(1);
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toHaveLength(1);
  });

  test('does not adopt the pull request of a fork with a branch of the same name', async () => {
    const { forge, names, openFromFork, commit } = await start();
    const foreign = await openFromFork(names.ben, 'proposed/shop/v1');
    expect((await forge.get(foreign, NO_SIGNAL)).head.isSameRepository).toBe(false);
    await commit('proposed/shop/v1');
    const own = await forge.open(wanted(), NO_SIGNAL);
    expect(own.number).not.toBe(foreign);
    expect(own.head.isSameRepository).toBe(true);
    expect(await forge.open(wanted(), NO_SIGNAL)).toEqual(own);
  });

  test('shortens titles to what the host permits, between characters', async () => {
    const { forge, commit } = await start();
    await commit('proposed/shop/v1');
    const pull = await forge.open({ ...wanted(), title: '📦'.repeat(400) }, NO_SIGNAL);
    expect(pull.title).toMatch(/^📦{100,}$/u);
    const changed = await forge.update(pull.number, { title: `a${'📦'.repeat(400)}` }, NO_SIGNAL);
    expect(changed.title).toMatch(/^a📦{100,}$/u);
  });

  test('opens none without a branch, or without a difference', async () => {
    const { forge, connect, secrets } = await start();
    for (const head of ['proposed/missing', 'main']) {
      const message = await failure(forge.open({ ...wanted(), head }, NO_SIGNAL));
      expect(message).toMatch(/^(InvalidInput|NotFound): /);
    }
    const elsewhere = await connect({ name: 'missing' });
    expect(await failure(elsewhere.open(wanted(), NO_SIGNAL), secrets)).toMatch(
      /^(NotFound|Unauthenticated): .*missing/,
    );
    expect(await failure(elsewhere.listOpen('main', 10, NO_SIGNAL), secrets)).toMatch(
      /^(NotFound|Unauthenticated): .*missing/,
    );
  });

  test('rejects a token that is not valid, and one that may only read', async () => {
    const { connect, secrets, pull } = await startWithPull();
    const unknown = await connect({ token: 'unknown' });
    expect(await failure(unknown.get(pull.number, NO_SIGNAL), secrets)).toMatch(/^Unauthenticated: /);
    const reader = await connect({ token: 'read-only' });
    expect((await reader.get(pull.number, NO_SIGNAL)).number).toBe(pull.number);
    const written = reader.update(pull.number, { title: 'other' }, NO_SIGNAL);
    expect(await failure(written, secrets)).toMatch(/^Refused: .*lacks a permission/);
  });

  test('updates the given fields only, of closed ones too', async () => {
    const { forge, names, pull, setState } = await startWithPull();
    expect(await forge.update(pull.number, { body: 'changed' }, NO_SIGNAL)).toMatchObject({
      title: pull.title,
      body: 'changed',
    });
    const titled = await forge.update(pull.number, { title: 'renamed' }, NO_SIGNAL);
    expect(titled).toMatchObject({ title: 'renamed', body: 'changed' });
    expect(await forge.update(pull.number, { body: '' }, NO_SIGNAL)).toMatchObject({ title: 'renamed', body: '' });
    await setState(names.anna, pull.number, 'closed');
    const closed = await forge.update(pull.number, { body: 'the end' }, NO_SIGNAL);
    expect(closed).toMatchObject({ state: 'closed', body: 'the end' });
    expect(await forge.get(pull.number, NO_SIGNAL)).toEqual(closed);
  });

  test('reports a pull request that does not exist', async () => {
    const { forge } = await start();
    const named = /^NotFound: .*pulls\/4711.*it does not exist/;
    expect(await failure(forge.get(4711, NO_SIGNAL))).toMatch(named);
    expect(await failure(forge.update(4711, { title: 'x' }, NO_SIGNAL))).toMatch(named);
    expect(await failure(forge.reviews(4711, NO_SIGNAL))).toMatch(/^NotFound: /);
  });
}
