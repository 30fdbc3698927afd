import { expect, test, vi } from 'vitest';
import { EPOCH, failure, NO_SIGNAL, SECOND, type Suite } from './forge-host.ts';

/** What every implementation has to do with comments. */
export function describeComments({ startWithPull, pageSize }: Suite): void {
  test('lists comments as they were written, from a time on, and within a limit', async () => {
    const { forge, names, pull, comment, editComment, review } = await startWithPull();
    const list = (since = EPOCH, limit = 100) => forge.comments(pull.number, since, limit, NO_SIGNAL);
    expect(await list()).toEqual([]);
    await comment(names.anna, pull.number, 'first\r\nünï ✓ 📦 <b>@ben</b>');
    await review(names.ben, pull.number, 'comment');
    await comment(names.ben, pull.number, 'second');
    const [first, second, ...others] = await list();
    const text = 'first\nünï ✓ 📦 <b>@ben</b>';
    expect(others).toEqual([]);
    expect(first).toEqual({
      ...{ id: expect.stringMatching(/^[1-9]\d*$/), author: names.anna, body: text },
      ...(first?.globalId === undefined ? {} : { globalId: expect.any(String) }),
      ...{ url: expect.stringMatching(/^http.*#.*\d$/), createdAt: expect.any(String), updatedAt: first?.createdAt },
    });
    expect(second).toMatchObject({ author: names.ben, body: 'second' });
    expect(Number(second?.id)).toBeGreaterThan(Number(first?.id));
    expect(await list(EPOCH, 1)).toEqual([first]);
    expect(await list('2999-01-01T00:00:00Z')).toEqual([]);
    await vi.waitFor(async () => {
      await editComment(names.anna, first?.id ?? '', `changed at ${Date.now()}`);
      const [changed] = await list();
      expect(Date.parse(changed?.updatedAt ?? '')).toBeGreaterThan(Date.parse(second?.updatedAt ?? ''));
    }, SECOND);
    const [changed] = await list();
    expect(changed).toMatchObject({
      id: first?.id,
      createdAt: first?.createdAt,
      body: expect.stringMatching(/^changed at/),
    });
    expect(await list(changed?.updatedAt)).toEqual([changed]);
    expect(await failure(forge.comments(4711, EPOCH, 10, NO_SIGNAL))).toMatch(/^NotFound: /);
  });

  test('an edit within the second of the comment is reported, or nothing is', async () => {
    const { forge, names, pull, comment, editComment } = await startWithPull();
    const read = async () => {
      const [found] = await forge.comments(pull.number, EPOCH, 1, NO_SIGNAL);
      if (found === undefined) throw new Error('there is no comment');
      return found;
    };
    await comment(names.anna, pull.number, 'as it is');
    const written = await read();
    const isAsWritten = await forge.isAsWritten(written, NO_SIGNAL);
    expect([true, undefined]).toContain(isAsWritten);
    await editComment(names.ben, written.id, 'as it was');
    const edited = await forge.isAsWritten(await read(), NO_SIGNAL);
    expect(edited).toBe(isAsWritten === undefined ? undefined : false);
    expect(await forge.isAsWritten(written, NO_SIGNAL)).toBe(edited);
  });

  test('lists more comments than one page has', async () => {
    const { forge, names, pull, comment } = await startWithPull();
    for (let at = 0; at < pageSize + 2; at += 1) await comment(names.anna, pull.number, `remark ${at}`);
    const all = await forge.comments(pull.number, EPOCH, 1000, NO_SIGNAL);
    expect(all.map(({ body }) => body)).toEqual(Array.from({ length: pageSize + 2 }, (_, at) => `remark ${at}`));
    expect(await forge.comments(pull.number, EPOCH, pageSize + 1, NO_SIGNAL)).toEqual(all.slice(0, -1));
  });

  test('has one comment for each topic, which is changed in place, also by another process', async () => {
    const { forge, names, pull, connect } = await startWithPull();
    const list = () => forge.comments(pull.number, EPOCH, 100, NO_SIGNAL);
    expect(await forge.findComment(pull.number, 'commands', NO_SIGNAL)).toBeUndefined();
    const written = await forge.setComment(pull.number, 'commands', 'one ✓\r\n- two', NO_SIGNAL);
    expect(written).toMatchObject({
      author: names.sluice,
      body: expect.stringMatching(/^<!-- .* -->\none ✓\n- two$/),
    });
    expect(await list()).toEqual([written]);
    const other = await connect({});
    expect(await other.findComment(pull.number, 'commands', NO_SIGNAL)).toEqual(written);
    expect(await other.findComment(pull.number, 'end', NO_SIGNAL)).toBeUndefined();
    expect(await other.setComment(pull.number, 'commands', 'one ✓\n- two\n', NO_SIGNAL)).toEqual(written);
    const changed = await other.setComment(pull.number, 'commands', 'three', NO_SIGNAL);
    expect(changed).toMatchObject({ id: written.id, body: expect.stringMatching(/-->\nthree$/) });
    const second = await forge.setComment(pull.number, 'end', 'the end', NO_SIGNAL);
    expect(second.id).not.toBe(written.id);
    expect(await list()).toEqual([changed, second]);
    const long = await forge.setComment(pull.number, 'end', '📦'.repeat(40_000), NO_SIGNAL);
    expect(long.body).toMatch(/^<!-- .* -->\n📦{30000,}$/u);
    expect(await list()).toEqual([changed, long]);
    expect(await failure(forge.setComment(4711, 'end', 'x', NO_SIGNAL))).toMatch(/^NotFound: /);
    const reader = await connect({ token: 'read-only' });
    expect(await failure(reader.setComment(pull.number, 'end', 'x', NO_SIGNAL))).toMatch(/^Refused: /);
  });

  test('changes no comment of a user who copies the marker, and writes another one where a user removed it', async () => {
    const { forge, names, pull, comment, editComment } = await startWithPull();
    const list = () => forge.comments(pull.number, EPOCH, 100, NO_SIGNAL);
    const own = await forge.setComment(pull.number, 'commands', 'one', NO_SIGNAL);
    await comment(names.ben, pull.number, own.body);
    const copy = (await list()).at(-1);
    expect((await forge.findComment(pull.number, 'commands', NO_SIGNAL))?.id).toBe(own.id);
    await forge.setComment(pull.number, 'commands', 'two', NO_SIGNAL);
    await editComment(names.ben, own.id, 'I wrote this');
    const next = await forge.setComment(pull.number, 'commands', 'three', NO_SIGNAL);
    expect(next.id).not.toBe(own.id);
    expect(next.author).toBe(names.sluice);
    expect((await list()).map(({ id, body }) => [id, body])).toEqual([
      [own.id, 'I wrote this'],
      [copy?.id, copy?.body],
      [next.id, next.body],
    ]);
  });

  test('removes what two processes created at the same time for a topic', async () => {
    const { forge, pull } = await startWithPull();
    const set = (text: string) => forge.setComment(pull.number, 'commands', text, NO_SIGNAL);
    // A host may refuse one of two changes at the same time.
    const results = await Promise.allSettled(['one', 'two', 'three'].map(set));
    const states = results.map(({ status }) => status);
    expect(states).toContain('fulfilled');
    if (!states.includes('rejected')) expect(await forge.comments(pull.number, EPOCH, 100, NO_SIGNAL)).toHaveLength(1);
    const last = await set('four');
    expect(await forge.comments(pull.number, EPOCH, 100, NO_SIGNAL)).toEqual([last]);
    expect(last.body).toMatch(/-->\nfour$/);
  });
}
