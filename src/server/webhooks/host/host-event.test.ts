import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { type HostEvent, hostEventIn, placeOf, placesAt } from './host-event.ts';

interface Payload {
  readonly action?: string;
  readonly repository?: { readonly html_url: string; readonly clone_url: string };
  readonly check_run?: { readonly head_sha: string };
  readonly check_suite?: { readonly head_sha: string };
}

const events = ['pull_request', 'pull_request_review', 'check_run', 'check_suite', 'issue_comment', 'merge_group'];
const require = createRequire(import.meta.url);
/** As GitHub documents them. */
const examples = require('@octokit/webhooks-examples') as readonly {
  readonly name: string;
  readonly examples: readonly unknown[];
}[];
const documented = (name: string) => (examples.find((one) => one.name === name)?.examples ?? []) as readonly Payload[];
const isAbout = (event: HostEvent, address: string) => placesAt(address).includes(placeOf(event) ?? '');
const read = (payload: unknown) => hostEventIn(Buffer.from(JSON.stringify(payload)));

test.each([...events, 'push'])('all documented payloads of %s are about their repository', (name) => {
  const payloads = documented(name);
  expect(payloads.length).toBeGreaterThan(0);
  for (const payload of payloads) {
    const event = read(payload);
    if (event === undefined) throw new Error('it was not read');
    expect(event.repository).toBe(payload.repository?.html_url);
    expect(isAbout(event, payload.repository?.clone_url ?? '')).toBe(true);
  }
});

test.each(['pull_request', 'pull_request_review', 'issue_comment'])(
  'all documented payloads of %s name what changed',
  (name) => {
    for (const payload of documented(name) as unknown as {
      issue?: { number: number; pull_request?: object };
      pull_request?: {
        number: number;
        updated_at: string;
        state: string;
        head: { ref: string; sha: string; repo: { id: number } | null };
        base: { repo: { id: number } };
      };
    }[]) {
      const { pull_request: shown, issue } = payload;
      const { pull, isCheckReport } = read(payload) ?? {};
      expect(isCheckReport).toBe(false);
      if (shown !== undefined) {
        const { number, updated_at: updatedAt, state, head, base } = shown;
        const own = head.repo?.id === base.repo.id ? { branch: head.ref, commit: head.sha } : undefined;
        const isReview = name === 'pull_request_review';
        expect(pull).toEqual({ number, updatedAt, state, head: own, isReview, isComment: false });
      } else if (issue?.pull_request !== undefined)
        expect(pull).toEqual({ number: issue.number, isReview: false, isComment: true });
      else expect(pull).toBeUndefined();
    }
  },
);

test('a message of Gitea without a review is no part of the conversation', () => {
  const pull_request = { number: 7 };
  expect(read({ pull_request, review: null })?.pull?.isReview).toBe(false);
  expect(read({ pull_request, review: { content: '' } })?.pull).toMatchObject({ isReview: true, isComment: false });
});

test('a message of Gitea names the branch of a pull request also once that is gone', () => {
  const commit = 'a'.repeat(40);
  const branchOf = (ref: string, label = 'proposed/app/v1') =>
    read({
      pull_request: { number: 7, head: { ref, label, sha: commit, repo: { id: 1 } }, base: { repo: { id: 1 } } },
    })?.pull?.head;
  for (const ref of ['proposed/app/v1', 'refs/pull/7/head'])
    expect(branchOf(ref)).toEqual({ branch: 'proposed/app/v1', commit });
  // As GitHub names it.
  expect(branchOf('feature', 'acme:feature')).toEqual({ branch: 'feature', commit });
});

test('a report of a check requests nothing, unless a user wants it again', () => {
  for (const payload of [...documented('check_run'), ...documented('check_suite')]) {
    const event = read(payload);
    expect(event?.isCheckReport).toBe(event?.hint === undefined);
    expect(event?.isOwnCheck).toBe(false);
  }
  const of = (action: string) => read({ action, check_run: { name: 'sluice/ready', head_sha: 'a'.repeat(40) } });
  expect(of('completed')).toMatchObject({ isCheckReport: true, isOwnCheck: true });
  expect(of('rerequested')).toMatchObject({ isCheckReport: false, isOwnCheck: false });
});

test('a report of a check that has ended names its commit, and one of a push its branch and files', () => {
  type Checked = Payload & { readonly sha?: string; readonly state?: string };
  for (const name of ['check_run', 'check_suite', 'status'])
    for (const payload of documented(name) as readonly Checked[]) {
      const { head_sha: commit } = payload.check_run ?? payload.check_suite ?? { head_sha: payload.sha };
      const hasEnded = name === 'status' ? payload.state !== 'pending' : payload.action === 'completed';
      expect(read(payload)?.checked).toBe(hasEnded ? commit : undefined);
    }
  const pushes = documented('push').map((payload) => read(payload)?.push);
  expect(new Set(pushes.filter((push) => push !== undefined).map(({ branch }) => branch))).toEqual(new Set(['master']));
  expect(pushes).toContainEqual({ branch: 'master', paths: ['README.md'] });
  const files = [{ added: ['a'], modified: 'b', removed: null }, { removed: ['c'] }];
  const push = { ref: 'refs/heads/main', after: 'a'.repeat(40) };
  expect(read({ ...push, commits: files })?.push).toEqual({ branch: 'main', paths: ['a', 'c'] });
  for (const commits of [undefined, null, 'none', [null]]) expect(read({ ...push, commits })?.push?.paths).toEqual([]);
});

test('only a request of a user runs checks again, and only a merge queue waits for them', () => {
  const hints = Object.fromEntries(
    events.map((name) => [
      name,
      new Set(documented(name).map((one) => `${one.action} ${JSON.stringify(read(one)?.hint)}`)),
    ]),
  );
  const runs = documented('check_run');
  const rerun = (action: string) => runs.find((one) => one.action === action)?.check_run?.head_sha;
  expect(hints.check_run).toEqual(
    new Set([
      ...['created', 'completed'].map((action) => `${action} undefined`),
      ...['requested_action', 'rerequested'].map((action) => `${action} {"rerun":"${rerun(action)}"}`),
    ]),
  );
  for (const hint of hints.check_suite ?? [])
    expect(hint).toMatch(/^rerequested \{"rerun":"[0-9a-f]{40}"\}$|undefined$/);
  expect(hints.merge_group).toEqual(new Set(['checks_requested "merge-queue"']));
  for (const name of ['pull_request', 'pull_request_review', 'issue_comment'])
    for (const hint of hints[name] ?? []) expect(hint).toMatch(/ undefined$/);
});

test.each(['installation', 'installation_repositories'])(
  'payloads of %s are about all repositories of the owner',
  (name) => {
    for (const payload of documented(name) as unknown as {
      installation: { account: { html_url: string; login: string } };
    }[]) {
      const event = read(payload);
      const { html_url: owner, login } = payload.installation.account;
      expect(event).toEqual({
        repository: undefined,
        owner,
        hint: undefined,
        pull: undefined,
        push: undefined,
        checked: undefined,
        isCheckReport: false,
        isOwnCheck: false,
      });
      if (event === undefined) continue;
      expect(isAbout(event, `https://github.com/${login}/apps.git`)).toBe(true);
      expect(isAbout(event, `git@github.com:${login}/apps`)).toBe(true);
      expect(isAbout(event, `https://github.com/${login}-other/apps.git`)).toBe(false);
      expect(isAbout(event, `https://git.example.com/${login}/apps.git`)).toBe(false);
    }
  },
);

test('a message is about no repository of another host, owner or name', () => {
  const event = read({ repository: { html_url: 'https://github.com/acme/apps' } });
  if (event === undefined) throw new Error('it was not read');
  expect(isAbout(event, 'https://GitHub.com/Acme/apps.git/')).toBe(true);
  for (const address of [
    ...[
      'https://git.example.com/acme/apps',
      'https://github.com/acme/apps2',
      'https://github.com/acme',
      '/srv/acme/apps',
    ],
    ...[
      'https://github.com/other/apps',
      'https://github.com/x/acme/apps',
      'https://github.com.evil.example/acme/apps',
      '',
    ],
  ])
    expect(isAbout(event, address), address).toBe(false);
});

test.each([
  undefined,
  '',
  'payload=%7B%7D',
  '[]',
  'null',
  '{"repository":{"html_url":"javascript:alert(1)"}}',
  '{"action":"rerequested","check_run":{"head_sha":"../../main"}}',
  `{"action":"rerequested","check_run":{"head_sha":"${'A'.repeat(40)}"}}`,
  '{"installation":{"account":{"html_url":7}}}',
])('what is not documented has no effect: %s', (text) => {
  const event = hostEventIn(text === undefined ? undefined : Buffer.from(text));
  expect([event?.hint, event?.owner, event?.repository]).toEqual([undefined, undefined, undefined]);
});

test('the message about a comment has it as its author wrote it', () => {
  const user = { login: 'bob' };
  const comment = { id: 12, user, body: '/sluice approve\r\n', original_author: '' };
  const message = { action: 'created', issue: { number: 3 }, comment, sender: user, is_pull: true };
  const { written } = read(message) ?? {};
  expect(written).toEqual({ id: '12', author: 'bob', body: '/sluice approve\r\n' });
  for (const other of [
    { ...message, action: 'edited' },
    { ...message, sender: { login: 'wally' } },
    { ...message, comment: { ...comment, original_author: 'bob' } },
    { ...message, issue: undefined },
  ])
    expect(read(other)?.written).toBeUndefined();
});
