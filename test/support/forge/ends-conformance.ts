import { expect, test, vi } from 'vitest';
import { EPOCH, NO_SIGNAL, SECOND, type Suite } from './forge-host.ts';

const OID = /^[0-9a-f]{40}$/;
/** What every implementation has to report of pull requests that were closed or merged. */
export function describeEnds({ startWithPull, pageSize }: Suite): void {
  test('reports who closed a pull request, and with which comment', async () => {
    const { forge, names, pull, comment, setState } = await startWithPull();
    await comment(names.ben, pull.number, 'I do not mind');
    await setState(names.anna, pull.number, 'closed');
    const closed = await forge.get(pull.number, NO_SIGNAL);
    expect(closed).toMatchObject({ state: 'closed', closedAt: expect.stringMatching(/Z$/) });
    expect(closed.merged).toBeUndefined();
    expect(await forge.closing(closed, NO_SIGNAL)).toEqual({ by: names.anna, comment: undefined });
    await setState(names.anna, pull.number, 'open');
    const again = await forge.get(pull.number, NO_SIGNAL);
    expect(again.state).toBe('open');
    expect(again.closedAt).toBeUndefined();
    await comment(names.ben, pull.number, 'first');
    await comment(names.ben, pull.number, 'too expensive:\n\n*really*');
    await comment(names.anna, pull.number, 'that is a pity');
    await setState(names.ben, pull.number, 'closed');
    const twice = await forge.get(pull.number, NO_SIGNAL);
    expect(await forge.closing(twice, NO_SIGNAL)).toEqual({ by: names.ben, comment: 'too expensive:\n\n*really*' });
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([]);
    expect(await forge.listUpdated(EPOCH, 10, NO_SIGNAL)).toEqual([twice]);
  });

  test('opens a closed pull request again, with another text', async () => {
    const { forge, names, pull, setState } = await startWithPull();
    await setState(names.anna, pull.number, 'closed');
    const opened = await forge.update(pull.number, { body: 'again', state: 'open' }, NO_SIGNAL);
    expect(opened).toMatchObject({ state: 'open', body: 'again' });
    expect(await forge.get(pull.number, NO_SIGNAL)).toMatchObject({ state: 'open', body: 'again' });
    expect((await forge.get(pull.number, NO_SIGNAL)).closedAt).toBeUndefined();
  });

  test('finds the end after a long conversation', async () => {
    const { forge, names, pull, comment, setState } = await startWithPull();
    for (let at = 0; at < pageSize; at += 1) await comment(names.anna, pull.number, `remark ${at}`);
    await comment(names.ben, pull.number, 'enough');
    await setState(names.ben, pull.number, 'closed');
    const closed = await forge.get(pull.number, NO_SIGNAL);
    expect(await forge.closing(closed, NO_SIGNAL)).toEqual({ by: names.ben, comment: 'enough' });
  });

  test('names the branch of a pull request after that is removed', async () => {
    const { forge, pull, head, deleteBranch } = await startWithPull();
    await deleteBranch('proposed/shop/v1');
    await vi.waitFor(async () => {
      const after = await forge.get(pull.number, NO_SIGNAL);
      expect(after.state).toBe('closed');
      expect(after.head).toEqual({ branch: 'proposed/shop/v1', commit: head, isSameRepository: true });
    }, SECOND);
  });

  test('states whether a pull request can be opened again without its branch; it can with the branch as it was', async () => {
    const { forge, names, pull, head, branch, deleteBranch, setState } = await startWithPull();
    await setState(names.anna, pull.number, 'closed');
    await deleteBranch('proposed/shop/v1');
    const opened = setState(names.anna, pull.number, 'open');
    expect(
      await opened.then(
        () => true,
        () => false,
      ),
    ).toBe(forge.reopensWithoutBranch);
    const expected = { state: 'open', head: { branch: 'proposed/shop/v1', commit: head, isSameRepository: true } };
    // A host that processes the removal of the branch in the background closes what is open by then.
    const reopen = () =>
      vi.waitFor(async () => {
        await setState(names.anna, pull.number, 'open');
        expect(await forge.get(pull.number, NO_SIGNAL)).toMatchObject(expected);
      }, SECOND);
    if (forge.reopensWithoutBranch) {
      await reopen();
      // Which fails while the host closes it itself.
      await vi.waitFor(() => setState(names.anna, pull.number, 'closed'), SECOND);
    }
    await branch('proposed/shop/v1', head);
    await reopen();
  });

  test('reports a merge: the commit, and who merged', async () => {
    const { forge, names, pull, head, commit, merge } = await startWithPull();
    const next = await commit('proposed/shop/v1');
    await vi.waitFor(async () => {
      expect((await forge.get(pull.number, NO_SIGNAL)).head.commit).toBe(next);
    }, SECOND);
    expect(await merge(names.anna, pull.number, head)).toBe(false);
    expect((await forge.get(pull.number, NO_SIGNAL)).state).toBe('open');
    expect(await merge(names.anna, pull.number, next)).toBe(true);
    const merged = await forge.get(pull.number, NO_SIGNAL);
    const main = await commit('after');
    expect(merged).toMatchObject({
      state: 'merged',
      merged: { commit: expect.stringMatching(OID), by: names.anna, base: expect.stringMatching(OID) },
      closedAt: expect.stringMatching(/Z$/),
      head: { commit: next },
    });
    expect(merged.merged?.commit).not.toBe(main);
    // Lists have the same, so that a comparison finds no change.
    expect(await forge.listUpdated(EPOCH, 10, NO_SIGNAL)).toEqual([merged]);
    expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([]);
  });
}
