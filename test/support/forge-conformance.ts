import { afterEach, describe, expect, type TestOptions, test, vi } from 'vitest';
import type { Annotation, Check, Forge, PullRequest } from '../../src/forge/forge.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { describeMerging } from './merging-conformance.ts';

/** A new repository on a host, as its users see it. `main` has one commit. */
export interface ForgeHost {
  /** As the user `names.sluice`. */
  readonly forge: Forge;
  readonly names: {
    readonly sluice: string;
    /** Users who may push. */
    readonly anna: string;
    readonly ben: string;
    /** A team that exists; undefined where the owner has none. */
    readonly team?: string;
    /** What the host reports to the user `sluice` of users who may push, and of others. */
    readonly permissions: { readonly writer: boolean | undefined; readonly other: boolean | undefined };
  };
  /** The same repository with another token, or another repository. */
  connect(other: { readonly token?: 'unknown' | 'read-only'; readonly name?: string }): Promise<Forge>;
  /** What errors must not contain. */
  readonly secrets: readonly string[];
  /** Adds a commit to a branch, created from `main` if there is none, with a new file or to `file`. Returns the commit. */
  commit(branch: string, file?: string): Promise<string>;
  /** Protects a branch: nothing is pushed to it, and a check has to succeed, or heads have to contain it, before a merge. */
  protect(branch: string, rules: { readonly check?: string; readonly upToDate?: boolean }): Promise<void>;
  /** Messages of the last commits of a branch, newest first. */
  log(branch: string, count: number): Promise<readonly string[]>;
  /** Creates a branch at a commit. */
  branch(name: string, commit: string): Promise<void>;
  deleteBranch(branch: string): Promise<void>;
  /** A user forks the repository, and opens a pull request from a branch of this name in the fork. Returns its number. */
  openFromFork(user: string, branch: string): Promise<number>;
  review(user: string, number: number, verdict: 'approve' | 'request-changes' | 'comment'): Promise<void>;
  dismiss(user: string, number: number, review: string): Promise<void>;
  comment(user: string, number: number, text: string): Promise<void>;
  /** Changes the text of a comment. */
  editComment(user: string, id: string, text: string): Promise<void>;
  setState(user: string, number: number, state: 'open' | 'closed'): Promise<void>;
  /** Merges it, if `head` is its present head. Returns whether it is merged. */
  merge(user: string, number: number, head: string): Promise<boolean>;
  /** Adds a label that is created with it. */
  label(user: string, number: number, label: string): Promise<void>;
  /** Labels of the repository. */
  labels(): Promise<readonly string[]>;
  /** All checks of a commit that count, and how many were ever written. */
  checks(commit: string): Promise<{ readonly current: readonly Check[]; readonly written: number }>;
  /** The annotations of a check as the host shows them, or its link where the host has only that. */
  annotations(commit: string, check: string): Promise<readonly Annotation[] | string>;
  /** The text of a check; undefined where the host has no place for it. */
  text(commit: string, check: string): Promise<string | undefined>;
  /** Whose review is requested: users, and teams. */
  requested(number: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface Conformance extends TestOptions {
  /** Makes a repository. */
  readonly open: () => Promise<ForgeHost>;
  /** More pull requests than one page of the host has. */
  readonly pageSize: number;
}

const NO_SIGNAL = new AbortController().signal;
const EPOCH = '1970-01-01T00:00:00Z';
/** Hosts record times in seconds. */
const SECOND = { timeout: 20_000, interval: 200 };

/** What every implementation of `Forge` has to do, on a host that keeps what is written. */
export function describeForge(name: string, { open, pageSize, ...options }: Conformance): void {
  let hosts: ForgeHost[] = [];
  afterEach(async () => {
    await Promise.all(hosts.map((host) => host.close()));
    hosts = [];
  });

  async function start(): Promise<ForgeHost> {
    const host = await open();
    hosts.push(host);
    return host;
  }

  /** A repository with a pull request from `proposed/shop/v1`. */
  async function startWithPull(): Promise<ForgeHost & { readonly pull: PullRequest; readonly head: string }> {
    const host = await start();
    const head = await host.commit('proposed/shop/v1');
    const pull = await host.forge.open(wanted(), NO_SIGNAL);
    return { ...host, pull, head };
  }

  describe(name, options, () => {
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
        updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      });
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
      expect(await failure(elsewhere.open(wanted(), NO_SIGNAL), secrets)).toMatch(/^NotFound: .*missing/);
      expect(await failure(elsewhere.listOpen('main', 10, NO_SIGNAL), secrets)).toMatch(/^NotFound: .*missing/);
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
      const named = /^NotFound: .*pulls\/4711.*it does not exist, or the token/;
      expect(await failure(forge.get(4711, NO_SIGNAL))).toMatch(named);
      expect(await failure(forge.update(4711, { title: 'x' }, NO_SIGNAL))).toMatch(named);
      expect(await failure(forge.reviews(4711, NO_SIGNAL))).toMatch(/^NotFound: /);
    });

    test('lists reviews with a verdict and the commit they are of, the last of each user, oldest first, and dismissals', async () => {
      const { forge, names, pull, head, commit, review, dismiss } = await startWithPull();
      const { anna, ben } = names;
      expect(await forge.reviews(pull.number, NO_SIGNAL)).toEqual([]);
      await forge.requestReviewers(pull.number, { users: [anna], teams: [] }, NO_SIGNAL);
      await review(ben, pull.number, 'comment');
      await review(ben, pull.number, 'request-changes');
      await review(anna, pull.number, 'approve');
      const next = await commit('proposed/shop/v1');
      await vi.waitFor(async () => {
        expect((await forge.get(pull.number, NO_SIGNAL)).head.commit).toBe(next);
      }, SECOND);
      await review(ben, pull.number, 'approve');
      const reviews = await forge.reviews(pull.number, NO_SIGNAL);
      expect(reviews.map(({ author, state, commit }) => [author, state, commit])).toEqual([
        [anna, 'approved', head],
        [ben, 'approved', next],
      ]);
      expect(new Set(reviews.map(({ id }) => id)).size).toBe(2);
      for (const { url, submittedAt } of reviews) {
        expect(url).toMatch(/^http/);
        expect(Date.parse(submittedAt)).toBeGreaterThan(Date.parse('2020-01-01'));
      }
      await dismiss(names.anna, pull.number, reviews[1]?.id ?? '');
      const after = await forge.reviews(pull.number, NO_SIGNAL);
      expect(after.map(({ author, state }) => [author, state])).toEqual([
        [anna, 'approved'],
        [ben, 'dismissed'],
      ]);
    });

    test('reads the reviews of more than one page', async () => {
      const { forge, names, pull, review } = await startWithPull();
      const many = pageSize + 2;
      for (let at = 0; at < many; at += 1)
        await review(names.anna, pull.number, at % 2 === 0 ? 'request-changes' : 'approve');
      const reviews = await forge.reviews(pull.number, NO_SIGNAL);
      expect(reviews.map(({ author, state }) => [author, state])).toEqual([
        [names.anna, many % 2 === 0 ? 'approved' : 'changes-requested'],
      ]);
    });

    test('reports reviewers that the host refuses, and requests the others', async () => {
      const { forge, names, pull, requested, secrets } = await startWithPull();
      const wantedUsers = { users: ['nobody-here', names.anna, names.sluice, names.ben], teams: ['no-such-team'] };
      const refused = await forge.requestReviewers(pull.number, wantedUsers, NO_SIGNAL);
      expect(refused.map(({ name: user }) => user)).toEqual(['nobody-here', names.sluice, 'no-such-team']);
      for (const { reason } of refused) {
        expect(reason.length).toBeGreaterThan(10);
        for (const secret of secrets) expect(reason).not.toContain(secret);
      }
      expect([...(await requested(pull.number))].sort()).toEqual([names.anna, names.ben].sort());
      expect(await forge.requestReviewers(pull.number, { users: [names.anna], teams: [] }, NO_SIGNAL)).toEqual([]);
      const team = names.team === undefined ? [] : [names.team];
      expect(await forge.requestReviewers(pull.number, { users: [], teams: team }, NO_SIGNAL)).toEqual([]);
      if (names.team !== undefined) expect(await requested(pull.number)).toContain(names.team);
    });

    test('adds labels, creates those that are missing, and leaves others', async () => {
      const { forge, names, pull, label, labels } = await startWithPull();
      await label(names.anna, pull.number, 'urgent');
      const current = await forge.get(pull.number, NO_SIGNAL);
      expect(current.labels).toEqual(['urgent']);
      await forge.addLabels(current, [], NO_SIGNAL);
      await forge.addLabels(current, ['sluice', 'team: ünï/web', 'urgent'], NO_SIGNAL);
      const labelled = await forge.get(pull.number, NO_SIGNAL);
      expect([...labelled.labels].sort()).toEqual(['sluice', 'team: ünï/web', 'urgent']);
      // Also with a state from before: nothing is created twice.
      await forge.addLabels(pull, ['sluice', 'urgent'], NO_SIGNAL);
      expect([...(await forge.get(pull.number, NO_SIGNAL)).labels].sort()).toEqual([...labelled.labels].sort());
      expect([...(await labels())].sort()).toEqual(['sluice', 'team: ünï/web', 'urgent']);
    });

    test('creates a label once for pull requests that get it at the same time', async () => {
      const { forge, commit, labels } = await start();
      const pulls: PullRequest[] = [];
      for (const workspace of ['v1', 'v2', 'v3']) {
        await commit(`proposed/shop/${workspace}`);
        pulls.push(await forge.open({ ...wanted(), head: `proposed/shop/${workspace}` }, NO_SIGNAL));
      }
      await Promise.all(pulls.map((pull) => forge.addLabels(pull, ['package'], NO_SIGNAL)));
      for (const { number } of pulls) expect((await forge.get(number, NO_SIGNAL)).labels).toEqual(['package']);
      expect(await labels()).toEqual(['package']);
    });

    test('sets checks by name, writes only what has changed, and leaves the checks of others', async () => {
      const { forge, head, checks } = await startWithPull();
      const first: Check[] = [
        { name: 'sluice/ready', state: 'pending', title: '2 of 3 gates are closed' },
        { name: 'sluice/gate/config.nephio.org/v1.Ready.shop', state: 'failure', title: 'not validated: ünï ✓' },
      ];
      await forge.setChecks(head, first, NO_SIGNAL);
      const set = await checks(head);
      expect(byName(set.current)).toEqual(byName(first));
      await forge.setChecks(head, first, NO_SIGNAL);
      expect((await checks(head)).written).toBe(set.written);
      const second: Check[] = [{ name: 'sluice/ready', state: 'success', title: 'all gates are open' }];
      await forge.setChecks(head, [...second, ...first.slice(1)], NO_SIGNAL);
      const after = await checks(head);
      expect(after.written).toBe(set.written + 1);
      expect(byName(after.current)).toEqual(byName([...second, ...first.slice(1)]));
      // A check that has ended can begin again, and end in another way, or with another title.
      for (const next of ['pending', 'failure', 'success'] as const) {
        const check: Check = { name: 'sluice/ready', state: next, title: `now ${next}` };
        await forge.setChecks(head, [check], NO_SIGNAL);
        expect(byName((await checks(head)).current)).toEqual(byName([check, ...first.slice(1)]));
      }
      const titled: Check = { name: 'sluice/ready', state: 'success', title: 'another title' };
      await forge.setChecks(head, [titled], NO_SIGNAL);
      expect((await checks(head)).current).toContainEqual(titled);
    });

    test('shows annotations of a check at their lines, or links to the first one, and replaces them', async () => {
      const { forge, head, checks, annotations: shownOf } = await startWithPull();
      const remark = (at: number): Annotation => ({
        ...{ path: `shop/ü b/#${at}.yaml`, line: at + 1, level: at === 0 ? 'failure' : 'warning' },
        ...{ title: 'InvalidYaml', message: `no resource: ${at}` },
      });
      const check: Check = { name: 'sluice/ready', state: 'failure', title: 'not valid' };
      const expectShown = async (annotations: readonly Annotation[]) => {
        const shown = await shownOf(head, check.name);
        if (typeof shown !== 'string') return expect(shown).toEqual(annotations);
        const { path = '', line } = annotations[0] ?? {};
        const at = path.split('/').map(encodeURIComponent).join('/');
        return expect(shown).toMatch(line === undefined ? /^$/ : new RegExp(`^https?://.*/${head}/${at}#L${line}$`));
      };
      const many = Array.from({ length: 120 }, (_, at) => remark(at));
      for (const annotations of [many, many.slice(1), [remark(7), remark(8)], []]) {
        await forge.setChecks(head, [{ ...check, annotations }], NO_SIGNAL);
        await expectShown(annotations);
        const { written, current } = await checks(head);
        expect(current).toEqual([check]);
        await forge.setChecks(head, [{ ...check, annotations }], NO_SIGNAL);
        expect((await checks(head)).written).toBe(written);
      }
      // They stay when the check ends in another way.
      await forge.setChecks(head, [{ ...check, annotations: many }], NO_SIGNAL);
      await forge.setChecks(head, [{ ...check, state: 'success', annotations: many }], NO_SIGNAL);
      await expectShown(many);
      expect((await checks(head)).current).toEqual([{ ...check, state: 'success' }]);
    });

    test('shows the text of a check, or links to its page, shortened and changed in place', async () => {
      const { forge, head, checks, annotations: shownOf, text: textOf } = await startWithPull();
      const check: Check = { name: 'sluice/ready', state: 'pending', title: '1 of 1 gates closed' };
      const url = 'https://git.example.com/owner/apps/pulls/1';
      for (const text of ['| Gate |\n|---|\n| `a` |', '📦'.repeat(20_000), '']) {
        await forge.setChecks(head, [{ ...check, text, url }], NO_SIGNAL);
        const shown = await textOf(head, check.name);
        if (shown === undefined) expect(await shownOf(head, check.name)).toBe(url);
        else if (text.length < 1000) expect(shown).toBe(text);
        else expect(shown).toMatch(/^📦{1000,}$/u);
        const { written, current } = await checks(head);
        expect(current).toEqual([check]);
        await forge.setChecks(head, [{ ...check, text, url }], NO_SIGNAL);
        expect((await checks(head)).written).toBe(written);
      }
    });

    test('sets more checks than one page has once, shortens their titles, and reports an unknown commit', async () => {
      const { forge, head, checks } = await startWithPull();
      const many: Check[] = Array.from({ length: pageSize + 5 }, (_, at) => ({
        name: `sluice/gate/type-${at}`,
        state: 'pending',
        title: '📦'.repeat(1000),
      }));
      await forge.setChecks(head, many, NO_SIGNAL);
      const set = await checks(head);
      expect(set.current).toHaveLength(many.length);
      for (const { title } of set.current) expect(title).toMatch(/^📦{50,}$/u);
      await forge.setChecks(head, many, NO_SIGNAL);
      expect((await checks(head)).written).toBe(set.written);
      const unknown = 'f'.repeat(40);
      expect(await failure(forge.setChecks(unknown, many, NO_SIGNAL))).toMatch(/^(InvalidInput|NotFound): /);
    });

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
        merged: {
          commit: expect.stringMatching(/^[0-9a-f]{40}$/),
          by: names.anna,
          base: expect.stringMatching(/^[0-9a-f]{40}$/),
        },
        closedAt: expect.stringMatching(/Z$/),
        head: { commit: next },
      });
      expect(merged.merged?.commit).not.toBe(main);
      // Lists have the same, so that a comparison finds no change.
      expect(await forge.listUpdated(EPOCH, 10, NO_SIGNAL)).toEqual([merged]);
      expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([]);
    });

    test('lists what changed at or after a time, changed last first, within a limit', async () => {
      const { forge, names, commit, comment } = await start();
      const pulls: PullRequest[] = [];
      for (const branch of ['proposed/a', 'proposed/b', 'proposed/c']) {
        await commit(branch);
        pulls.push(await forge.open({ ...wanted(), head: branch }, NO_SIGNAL));
      }
      const [first, , last] = pulls;
      // Times are in seconds: repeated until it is in another one than the others.
      await vi.waitFor(async () => {
        await comment(names.anna, first?.number ?? 0, 'a remark');
        const changed = await forge.get(first?.number ?? 0, NO_SIGNAL);
        expect(Date.parse(changed.updatedAt)).toBeGreaterThan(Date.parse(last?.updatedAt ?? ''));
      }, SECOND);
      const changed = await forge.get(first?.number ?? 0, NO_SIGNAL);
      const numbers = async (since: string, limit: number) =>
        (await forge.listUpdated(since, limit, NO_SIGNAL)).map(({ number }) => number);
      expect((await numbers(EPOCH, 10))[0]).toBe(first?.number);
      expect([...(await numbers(EPOCH, 10))].sort()).toEqual(pulls.map(({ number }) => number).sort());
      expect(await numbers(changed.updatedAt, 10)).toEqual([first?.number]);
      expect(await numbers(EPOCH, 1)).toEqual([first?.number]);
      expect(await numbers('2999-01-01T00:00:00Z', 10)).toEqual([]);
      expect((await forge.listOpen('main', 1, NO_SIGNAL)).map(({ number }) => number)).toEqual([first?.number]);
      expect(await forge.listOpen('main', 10, NO_SIGNAL)).toHaveLength(3);
    });

    test('finds the pull requests to a branch among more to others', async () => {
      const { forge, commit, pull } = await startWithPull();
      await commit('release');
      for (let at = 0; at < 3; at += 1) {
        await commit(`other/${at}`);
        await forge.open({ ...wanted(), head: `other/${at}`, base: 'release' }, NO_SIGNAL);
      }
      expect((await forge.listOpen('main', 2, NO_SIGNAL)).map(({ number }) => number)).toEqual([pull.number]);
      expect(await forge.listOpen('release', 2, NO_SIGNAL)).toHaveLength(2);
      expect(await forge.listOpen('no-such-branch', 2, NO_SIGNAL)).toEqual([]);
    });

    test('lists more than one page', async () => {
      const { forge, commit, branch } = await start();
      const count = pageSize + 3;
      const from = await commit('many/0');
      for (let at = 0; at < count; at += 1) {
        if (at > 0) await branch(`many/${at}`, from);
        await forge.open({ ...wanted(), head: `many/${at}` }, NO_SIGNAL);
      }
      for (const list of [
        await forge.listOpen('main', 1000, NO_SIGNAL),
        await forge.listUpdated(EPOCH, 1000, NO_SIGNAL),
      ])
        expect(new Set(list.map(({ number }) => number)).size).toBe(count);
      expect(await forge.listUpdated(EPOCH, count - 1, NO_SIGNAL)).toHaveLength(count - 1);
      // The oldest is found by its branches too.
      const again = await forge.open({ ...wanted(), head: 'many/0' }, NO_SIGNAL);
      expect(again.head.branch).toBe('many/0');
    });

    describeMerging(startWithPull);

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
      const written = await forge.setComment(pull.number, 'commands', 'one ✓\r\n- two', NO_SIGNAL);
      expect(written).toMatchObject({
        author: names.sluice,
        body: expect.stringMatching(/^<!-- .* -->\none ✓\n- two$/),
      });
      expect(await list()).toEqual([written]);
      const other = await connect({});
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
      expect(results.map(({ status }) => status)).toContain('fulfilled');
      const last = await set('four');
      expect(await forge.comments(pull.number, EPOCH, 100, NO_SIGNAL)).toEqual([last]);
      expect(last.body).toMatch(/-->\nfour$/);
    });

    test('reports whether a user may push, as far as the host does', async () => {
      const { forge, names } = await start();
      expect(await forge.mayWrite(names.anna, NO_SIGNAL)).toBe(names.permissions.writer);
      expect(await forge.mayWrite('nobody-here', NO_SIGNAL)).toBe(names.permissions.other);
    });

    test('stops at a signal', async () => {
      const { forge } = await start();
      const reason = new Error('no time left');
      await expect(forge.listOpen('main', 10, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
}

function wanted() {
  return {
    ...{ head: 'proposed/shop/v1', base: 'main' },
    ...{ title: 'shop v1', body: 'A *proposal*:\n\n- ünï ✓ <!-- sluice -->\n' },
  };
}

/** Code and message of a rejection with a SluiceError, which contains none of these secrets. */
async function failure(call: Promise<unknown>, secrets: readonly string[] = []): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isSluiceError(error)) throw error ?? new Error('it was expected to fail');
  const message = `${error.code}: ${error.message}`;
  for (const secret of secrets) expect(message).not.toContain(secret);
  return message;
}

function byName(checks: readonly Check[]): readonly Check[] {
  return [...checks].sort((a, b) => (a.name < b.name ? -1 : 1));
}
