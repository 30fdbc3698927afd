import { describe, expect, test, vi } from 'vitest';
import type { ForgeIssues } from '../../../src/forge/forge-issues.ts';
import { EPOCH, type ForgeHost, failure, NO_SIGNAL, SECOND, type Suite } from './forge-host.ts';

/** What every implementation of `ForgeIssues` has to do. */
export function describeIssues({ start, startWithPull, pageSize }: Suite): void {
  const wanted = (topic = 'task-1') => ({ topic, since: EPOCH, title: 'Connect rack 7', body: 'Cables: `a` ünï ✓\n' });

  function issuesOf({ forge }: Pick<ForgeHost, 'forge'>): ForgeIssues {
    if (forge.issues === undefined) throw new Error('the host has no issues');
    return forge.issues;
  }

  describe('issues', () => {
    test('are opened once for a topic, and returned in the same form everywhere', async () => {
      const host = await start();
      const { names, connect } = host;
      const issues = issuesOf(host);
      expect(await issues.find(wanted(), NO_SIGNAL)).toBeUndefined();
      const issue = await issues.open(wanted(), NO_SIGNAL);
      expect(issue).toEqual({
        number: expect.any(Number),
        url: expect.stringMatching(/^http.*\/issues\/\d+$/),
        state: 'open',
        ...{ title: 'Connect rack 7', body: 'Cables: `a` ünï ✓\n', topic: 'task-1', author: names.sluice },
        ...{ labels: [], assignees: [] },
        updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      });
      const other = issuesOf({ forge: await connect({}) });
      expect(await other.open({ ...wanted(), title: 'another', body: 'another' }, NO_SIGNAL)).toEqual(issue);
      for (const one of [issues, other]) {
        expect(await one.get(issue.number, NO_SIGNAL)).toEqual(issue);
        expect(await one.find(wanted(), NO_SIGNAL)).toEqual(issue);
        expect(await one.listUpdated(EPOCH, 10, NO_SIGNAL)).toEqual([issue]);
      }
      const next = await issues.open(wanted('task-10'), NO_SIGNAL);
      expect(next.number).toBeGreaterThan(issue.number);
      expect(await issues.find({ topic: 'task-1', since: '2999-01-01T00:00:00Z' }, NO_SIGNAL)).toBeUndefined();
    });

    test('of users are no tickets, also with the marker of one', async () => {
      const host = await start();
      const { names, openIssue } = host;
      const issues = issuesOf(host);
      const marker = '<!-- sluice:issue topic=task-1 -->\ncopied';
      const copy = await openIssue(names.ben, 'Connect rack 7', marker);
      expect(await issues.find(wanted(), NO_SIGNAL)).toBeUndefined();
      const issue = await issues.open(wanted(), NO_SIGNAL);
      expect(issue.number).not.toBe(copy);
      expect(await issues.find(wanted(), NO_SIGNAL)).toEqual(issue);
      expect(await issues.get(copy, NO_SIGNAL)).toMatchObject({ author: names.ben, topic: undefined, body: marker });
      expect((await issues.listUpdated(EPOCH, 10, NO_SIGNAL)).map(({ number }) => number)).toEqual([issue.number]);
    });

    test('that were closed are returned as they are, with who closed them, and can be opened again', async () => {
      const host = await start();
      const { forge, names, changeIssue, comment } = host;
      const issues = issuesOf(host);
      const { number } = await issues.open(wanted(), NO_SIGNAL);
      await comment(names.ben, number, 'connected');
      await changeIssue(names.ben, number, { state: 'closed' });
      const closed = await issues.open(wanted(), NO_SIGNAL);
      expect(closed).toMatchObject({ number, state: 'completed', closedAt: expect.stringMatching(/Z$/) });
      expect(await issues.find(wanted(), NO_SIGNAL)).toEqual(closed);
      expect(await forge.closing(closed, NO_SIGNAL)).toEqual({ by: names.ben, comment: 'connected' });
      const again = await issues.update(number, { state: 'open' }, NO_SIGNAL);
      expect(again).toMatchObject({ number, state: 'open', topic: 'task-1' });
      expect(again.closedAt).toBeUndefined();
      expect((await issues.update(number, { state: 'completed' }, NO_SIGNAL)).state).toBe('completed');
      expect((await issues.update(number, { state: 'completed' }, NO_SIGNAL)).state).toBe('completed');
      await issues.update(number, { state: 'open' }, NO_SIGNAL);
      const unplanned = await issues.update(number, { state: 'not-planned' }, NO_SIGNAL);
      expect(['completed', 'not-planned']).toContain(unplanned.state);
      expect((await issues.get(number, NO_SIGNAL)).state).toBe(unplanned.state);
    });

    test('are changed in the given fields only, and keep their topic', async () => {
      const host = await start();
      const issues = issuesOf(host);
      const { number } = await issues.open(wanted(), NO_SIGNAL);
      const titled = await issues.update(number, { title: '📦'.repeat(400) }, NO_SIGNAL);
      expect(titled).toMatchObject({ title: expect.stringMatching(/^📦{100,}$/u), body: wanted().body });
      const changed = await issues.update(number, { body: 'changed\r\n- twice' }, NO_SIGNAL);
      expect(changed).toMatchObject({ title: titled.title, body: 'changed\n- twice', topic: 'task-1', state: 'open' });
      expect(await issues.update(number, { body: '' }, NO_SIGNAL)).toMatchObject({ body: '', topic: 'task-1' });
      expect((await issues.find(wanted(), NO_SIGNAL))?.number).toBe(number);
      const long = await issues.update(number, { body: '📦'.repeat(40_000) }, NO_SIGNAL);
      expect(long).toMatchObject({ body: expect.stringMatching(/^📦{30000,}$/u), topic: 'task-1' });
    });

    test('have labels and users whom they are assigned to, with the reason for those that the host refuses', async () => {
      const host = await start();
      const { names, label, labels, secrets } = host;
      const issues = issuesOf(host);
      const issue = await issues.open(wanted(), NO_SIGNAL);
      await label(names.anna, issue.number, 'urgent');
      await issues.addLabels(issue, ['sluice', 'urgent'], NO_SIGNAL);
      expect([...(await issues.get(issue.number, NO_SIGNAL)).labels].sort()).toEqual(['sluice', 'urgent']);
      expect([...(await labels())].sort()).toEqual(['sluice', 'urgent']);
      const refused = await issues.assign(issue, [names.anna, 'missing-user', names.ben], NO_SIGNAL);
      expect(refused.map(({ name }) => name)).toEqual(['missing-user']);
      expect(refused[0]?.reason.length).toBeGreaterThan(10);
      for (const secret of secrets) expect(refused[0]?.reason).not.toContain(secret);
      const assigned = await issues.get(issue.number, NO_SIGNAL);
      expect([...assigned.assignees].sort()).toEqual([names.anna, names.ben].sort());
      expect(await issues.assign(assigned, [names.anna], NO_SIGNAL)).toEqual([]);
      expect((await issues.find(wanted(), NO_SIGNAL))?.assignees).toHaveLength(2);
    });

    test('have comments as pull requests have', async () => {
      const host = await start();
      const { forge, names, comment } = host;
      const { number } = await issuesOf(host).open(wanted(), NO_SIGNAL);
      const own = await forge.setComment(number, 'state', 'waits', NO_SIGNAL);
      await comment(names.ben, number, 'on it');
      const changed = await forge.setComment(number, 'state', 'still waits', NO_SIGNAL);
      expect(changed.id).toBe(own.id);
      const all = await forge.comments(number, EPOCH, 10, NO_SIGNAL);
      expect(all.map(({ author, body }) => [author, body])).toEqual([
        [names.sluice, expect.stringMatching(/-->\nstill waits$/)],
        [names.ben, 'on it'],
      ]);
    });

    test('are one for processes that open it at the same time, and after one that ended in between', async () => {
      const host = await start();
      const { forge, names, connect, openIssue } = host;
      const others = await Promise.all([connect({}), connect({})]);
      const all = [forge, ...others].map((one) => issuesOf({ forge: one }));
      const results = await Promise.allSettled(all.map((one) => one.open(wanted(), NO_SIGNAL)));
      // A host may refuse one of two changes at the same time; the caller repeats it.
      expect(results.map(({ status }) => status)).toContain('fulfilled');
      const last = await issuesOf(host).open(wanted(), NO_SIGNAL);
      expect(last.state).toBe('open');
      const known = await issuesOf(host).listUpdated(EPOCH, 100, NO_SIGNAL);
      expect(known.filter(({ topic }) => topic === 'task-1').map(({ number }) => number)).toEqual([last.number]);
      for (const result of results) if (result.status === 'fulfilled') expect(result.value.number).toBe(last.number);
      // A process opened another one, and ended before it looked for those of others.
      const second = await openIssue(names.sluice, 'Connect rack 7', '<!-- sluice:issue topic=task-1 -->\ntext');
      expect((await issuesOf(host).open(wanted(), NO_SIGNAL)).number).toBe(last.number);
      const listed = await issuesOf(host).listUpdated(EPOCH, 100, NO_SIGNAL);
      expect(listed.filter(({ topic }) => topic === 'task-1').map(({ number }) => number)).toEqual([last.number]);
      expect((await issuesOf(host).get(second, NO_SIGNAL)).topic).toBeUndefined();
    });

    test('are found among more than one page of others', async () => {
      const host = await start();
      const { names, openIssue } = host;
      const issues = issuesOf(host);
      const first = await issues.open(wanted('first'), NO_SIGNAL);
      for (let at = 0; at < pageSize + 1; at += 1)
        await openIssue(at % 2 === 0 ? names.ben : names.sluice, `issue ${at}`, 'text');
      const last = await issues.open(wanted('last'), NO_SIGNAL);
      expect(await issues.find(wanted('first'), NO_SIGNAL)).toEqual(first);
      const listed = await issues.listUpdated(EPOCH, 10, NO_SIGNAL);
      expect(new Set(listed.map(({ number }) => number))).toEqual(new Set([first.number, last.number]));
      await vi.waitFor(async () => {
        const changed = await issues.update(first.number, { title: `changed at ${Date.now()}` }, NO_SIGNAL);
        expect(Date.parse(changed.updatedAt)).toBeGreaterThan(Date.parse(last.updatedAt));
      }, SECOND);
      expect((await issues.listUpdated(EPOCH, 1, NO_SIGNAL)).map(({ number }) => number)).toEqual([first.number]);
    });

    test('are no pull requests, and are reported where they or a permission are missing', async () => {
      const { pull, ...host } = await startWithPull();
      const { connect, secrets } = host;
      const issues = issuesOf(host);
      expect(await failure(issues.get(pull.number, NO_SIGNAL))).toMatch(/^NotFound: .*pull request/);
      expect(await failure(issues.get(4711, NO_SIGNAL))).toMatch(/^NotFound: /);
      expect(await failure(issues.update(4711, { title: 'x' }, NO_SIGNAL))).toMatch(/^NotFound: /);
      const { number } = await issues.open(wanted(), NO_SIGNAL);
      expect(number).not.toBe(pull.number);
      expect(await issues.listUpdated(EPOCH, 10, NO_SIGNAL)).toHaveLength(1);
      const reader = issuesOf({ forge: await connect({ token: 'read-only' }) });
      expect((await reader.get(number, NO_SIGNAL)).number).toBe(number);
      expect(await failure(reader.open(wanted('other'), NO_SIGNAL), secrets)).toMatch(/^Refused: .*lacks a permission/);
    });
  });
}
