import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, inject, test, vi } from 'vitest';
import { GiteaForge } from '../../src/forge/gitea/gitea-forge.ts';
import { ForgeBudgets } from '../../src/forge/http/forge-budgets.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { describeForge } from '../support/forge/forge-conformance.ts';
import type { ForgeHost } from '../support/forge/forge-host.ts';
import { messagesOf } from '../support/forge/merging-conformance.ts';
import { GIT_ENVIRONMENT, temporaryFolder } from '../support/git/git-cli.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, type Login, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

/** As many as Gitea returns at most. */
const PAGE_SIZE = 50;
const NO_COMMIT = '0'.repeat(40);
const WAIT = { timeout: 90_000, interval: 200 };

let users: Promise<ReadonlyMap<string, Login>> | undefined;
let repositories = 0;

function createUsers(): Promise<ReadonlyMap<string, Login>> {
  const names = ['pulls-sluice', 'pulls-anna', 'pulls-ben'];
  return Promise.all(names.map(async (name) => [name, await gitea.createUser(name)] as const)).then(
    (all) => new Map(all),
  );
}

const NO_SIGNAL = new AbortController().signal;

type Host = ForgeHost & {
  /** The path of the repository in the API. */
  readonly path: string;
  /** The same repository at another address of the API. */
  at(api: string): GiteaForge;
};

async function open(): Promise<Host> {
  users ??= createUsers();
  const logins = await users;
  repositories += 1;
  const name = `pulls-${repositories}`;
  await gitea.createRepository(name);
  for (const user of logins.keys()) await gitea.addWriter(user, name);
  const sluice = 'pulls-sluice';
  const token = await gitea.createToken(sluice, name, [
    'write:repository',
    'write:issue',
    'read:user',
    'read:organization',
  ]);
  const readOnly = await gitea.createToken(sluice, `${name}-reads`, ['read:repository', 'read:issue', 'read:user']);
  const tokens = { own: token, unknown: '0123456789abcdef0123456789abcdef01234567', 'read-only': readOnly };
  const path = `/repos/${OWNER.username}/${name}`;
  const forges: GiteaForge[] = [];

  const connect = (options: { token?: 'unknown' | 'read-only'; name?: string; api?: string }) => {
    const forge = new GiteaForge({
      ...{ api: options.api ?? `${gitea.url}/api/v1`, owner: OWNER.username, name: options.name ?? name },
      ...{ network: DEFAULT_NETWORK, budgets: new ForgeBudgets(systemClock) },
      ...{ token: async () => tokens[options.token ?? 'own'], tokenName: 'Secret default/gitea' },
    });
    forges.push(forge);
    return forge;
  };
  const as = (user: string): Login => logins.get(user) ?? OWNER;
  const branches = async () =>
    ((await gitea.api('GET', `${path}/branches?limit=50`)) as { name: string }[]).map((branch) => branch.name);
  let files = 0;
  const shaOf = async (at: string) => {
    try {
      return ((await gitea.api('GET', at)) as { sha: string }).sha;
    } catch (error) {
      if (error instanceof Error && error.message.includes(': 404 ')) return undefined;
      throw error;
    }
  };
  /** Adds a file to a branch. Returns the commit. */
  const write = async (
    ...[repository, user, branch, isNew, file]: [string, Login, string, boolean, string?]
  ): Promise<string> => {
    files += 1;
    const content = Buffer.from(String(files)).toString('base64');
    const target = isNew ? { branch: 'main', new_branch: branch } : { branch };
    const at = `${repository}/contents/${file ?? `file-${files}`}`;
    const present = file === undefined ? undefined : await shaOf(`${at}?ref=${isNew ? 'main' : branch}`);
    const method = present === undefined ? 'POST' : 'PUT';
    const known = present === undefined ? {} : { sha: present };
    const made = await gitea.api(method, at, { content, ...known, ...target }, user);
    return (made as { commit: { sha: string } }).commit.sha;
  };

  /**
   * Gitea counts in the background how far a push leaves each pull request behind, and merges by the rule as if none had happened until
   * then. The head of these requests is none, so that nothing is merged.
   */
  const knowsHeadsBehind = async (): Promise<void> => {
    const pulls = (await gitea.api('GET', `${path}/pulls?state=open`)) as { number: number }[];
    for (const { number } of pulls) {
      const merge = () =>
        gitea.api('POST', `${path}/pulls/${number}/merge`, { Do: 'merge', head_commit_id: NO_COMMIT });
      await vi.waitFor(() => expect(merge()).rejects.toThrow(/behind the base branch/), WAIT);
    }
  };

  let teamId: number | undefined;
  /** A team with the user of Sluice, who could not read it otherwise. */
  const createTeam = async (organization: string): Promise<number> => {
    await gitea.api('POST', '/orgs', { username: organization });
    const team = { name: 'sre', permission: 'read', units: ['repo.code'] };
    const { id } = (await gitea.api('POST', `/orgs/${organization}/teams`, team)) as { id: number };
    await gitea.api('PUT', `/teams/${id}/members/${sluice}`);
    return id;
  };

  return {
    path,
    at: (api) => connect({ api }),
    forge: connect({}),
    createsContent: false,
    names: {
      ...{ sluice, anna: 'pulls-anna', ben: 'pulls-ben' },
      // Only administrators of the repository learn it.
      permissions: { writer: undefined, other: undefined },
    },
    secrets: Object.values(tokens),
    connect: async (other) => connect(other),
    commit: async (branch, file) => write(path, OWNER, branch, !(await branches()).includes(branch), file),
    permitMethods: async (methods) => {
      const permitted = {
        ...{ allow_merge_commits: methods.includes('merge'), allow_squash_merge: methods.includes('squash') },
        ...{ allow_rebase: methods.includes('rebase'), default_merge_style: methods[0] },
      };
      await gitea.api('PATCH', path, permitted);
    },
    protect: async (branch, { check, upToDate = false }) => {
      const checks = check === undefined ? {} : { enable_status_check: true, status_check_contexts: [check] };
      const rule = { rule_name: branch, enable_push: false, block_on_outdated_branch: upToDate, ...checks };
      await gitea.api('POST', `${path}/branch_protections`, rule);
      if (upToDate) await knowsHeadsBehind();
    },
    log: async (branch, count) => messagesOf(gitea.pathOf(name), branch, count),
    branch: async (branch, from) =>
      void (await gitea.api('POST', `${path}/branches`, { new_branch_name: branch, old_ref_name: from })),
    deleteBranch: async (branch) => void (await gitea.api('DELETE', `${path}/branches/${encodeURIComponent(branch)}`)),
    openFromFork: async (user, branch) => {
      await gitea.api('POST', `${path}/forks`, {}, as(user));
      await write(`/repos/${user}/${name}`, as(user), branch, true);
      const wanted = { head: `${user}:${branch}`, base: 'main', title: 'from a fork' };
      return ((await gitea.api('POST', `${path}/pulls`, wanted, as(user))) as { number: number }).number;
    },
    review: async (user, number, verdict) => {
      const event = { approve: 'APPROVED', 'request-changes': 'REQUEST_CHANGES', comment: 'COMMENT' }[verdict];
      await gitea.api('POST', `${path}/pulls/${number}/reviews`, { event, body: 'a review' }, as(user));
    },
    // Dismissing takes the right to administer.
    dismiss: async (_user, number, review) =>
      void (await gitea.api('POST', `${path}/pulls/${number}/reviews/${review}/dismissals`, { message: 'outdated' })),
    join: async (user) => {
      const organization = `${name}-org`;
      teamId ??= await createTeam(organization);
      await gitea.api('PUT', `/teams/${teamId}/members/${user}`);
      return `${organization}/sre`;
    },
    leave: async (user) => void (await gitea.api('DELETE', `/teams/${teamId}/members/${user}`)),
    comment: async (user, number, body) =>
      void (await gitea.api('POST', `${path}/issues/${number}/comments`, { body }, as(user))),
    editComment: async (user, id, body) =>
      void (await gitea.api('PATCH', `${path}/issues/comments/${id}`, { body }, as(user))),
    openIssue: async (user, title, body) =>
      ((await gitea.api('POST', `${path}/issues`, { title, body }, as(user))) as { number: number }).number,
    changeIssue: async (user, number, change) =>
      void (await gitea.api('PATCH', `${path}/issues/${number}`, change, as(user))),
    setState: async (user, number, state) =>
      void (await gitea.api('PATCH', `${path}/pulls/${number}`, { state }, as(user))),
    setBase: async (user, number, base) =>
      void (await gitea.api('PATCH', `${path}/pulls/${number}`, { base }, as(user))),
    merge: async (user, number, head) => {
      const body = { Do: 'merge', head_commit_id: head };
      for (;;) {
        try {
          await gitea.api('POST', `${path}/pulls/${number}/merge`, body, as(user));
          return true;
        } catch (error) {
          if (!(error instanceof Error)) throw error;
          if (/: 409 /.test(error.message)) return false;
          // Gitea has not checked yet whether there is a conflict.
          if (!/: 405 .*try again later/.test(error.message)) throw error;
          await delay(100);
        }
      }
    },
    schedule: async (user, number) => {
      const wanted = { Do: 'merge', merge_when_checks_succeed: true };
      await gitea.api('POST', `${path}/pulls/${number}/merge`, wanted, as(user));
    },
    label: async (_user, number, label) => {
      const made = await gitea.api('POST', `${path}/labels`, { name: label, color: '#ff0000' });
      await gitea.api('POST', `${path}/issues/${number}/labels`, { labels: [(made as { id: number }).id] });
    },
    labels: async () =>
      ((await gitea.api('GET', `${path}/labels?limit=50`)) as { name: string }[]).map((label) => label.name),
    checks: async (commit) => {
      type Status = { id: number; context: string; status: 'pending' | 'success' | 'failure'; description: string };
      const all: Status[] = [];
      for (let page = 1; ; page += 1) {
        const statuses = await gitea.api('GET', `${path}/statuses/${commit}?page=${page}&limit=50`);
        all.push(...(statuses as Status[]));
        if ((statuses as Status[]).length < PAGE_SIZE) break;
      }
      all.sort((a, b) => a.id - b.id);
      const current = new Map(
        all.map(({ context, status, description }) => [context, { name: context, state: status, title: description }]),
      );
      return { current: [...current.values()], written: all.length };
    },
    text: async () => undefined,
    annotations: async (commit, check) => {
      const statuses = await gitea.api('GET', `${path}/statuses/${commit}?limit=50&sort=leastindex`);
      const all = (statuses as { id: number; context: string; target_url: string }[]).sort((a, b) => a.id - b.id);
      return all.findLast(({ context }) => context === check)?.target_url ?? '';
    },
    requested: async (number) => {
      const pull = (await gitea.api('GET', `${path}/pulls/${number}`)) as { requested_reviewers: { login: string }[] };
      return pull.requested_reviewers.map(({ login }) => login);
    },
    close: async () => {
      for (const forge of forges) await forge.close();
    },
  };
}

describeForge('pull requests of Gitea', { open, pageSize: PAGE_SIZE, ...skipFor(missing !== '' && missing) });

interface Front {
  readonly api: string;
  /** Method and path of each request. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

/** Gitea behind an address that changes paths, and keeps each response until `answered` with its request resolves. */
async function startFront(change: {
  path?(path: string): string;
  answered?(request: string): Promise<unknown> | undefined;
}): Promise<Front> {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const path = change.path?.(request.url ?? '') ?? request.url ?? '';
    requests.push(`${request.method} ${path}`);
    const answer = await fetch(`${gitea.url}${path}`, {
      method: request.method ?? 'GET',
      headers: { authorization: request.headers.authorization ?? '', 'content-type': 'application/json' },
      body: parts.length === 0 ? null : Buffer.concat(parts).toString(),
    });
    const text = await answer.text();
    await change.answered?.(`${request.method} ${path}`);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    api: `http://127.0.0.1:${port}/api/v1`,
    requests,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

describe('limits of Gitea', { ...skipFor(missing !== '' && missing), timeout: 180_000 }, () => {
  const wanted = { base: 'main', title: 'shop', body: 'text' };

  test('a dismissed review is a change of the pull request, and a deleted one is missing without any', async () => {
    const { forge, names, commit, review, dismiss, path } = await open();
    await commit('proposed/shop/v1');
    const { number } = await forge.open({ ...wanted, head: 'proposed/shop/v1' }, NO_SIGNAL);
    const updatedAt = async () => (await forge.get(number, NO_SIGNAL)).updatedAt;
    const only = async () => (await forge.reviews(number, NO_SIGNAL))[0];
    await review(names.anna, number, 'approve');
    const { id = '' } = (await only()) ?? {};
    const before = await updatedAt();
    // Times are in seconds.
    await delay(1100);
    await dismiss(names.anna, number, id);
    expect(await updatedAt()).not.toBe(before);
    await delay(1100);
    const dismissed = await updatedAt();
    await gitea.api('DELETE', `${path}/pulls/${number}/reviews/${id}`);
    expect(await only()).toBeUndefined();
    expect(await updatedAt()).toBe(dismissed);
  });

  test('where pages are smaller than asked for, all of them are read', async () => {
    const { at, path, names, commit, branch, review, checks, close } = await open();
    // As with `[api] MAX_RESPONSE_ITEMS`.
    const pages = await startFront({
      path: (asked) => asked.replace(/\blimit=(\d+)/, (_, limit) => `limit=${Math.min(Number(limit), 3)}`),
    });
    try {
      const forge = at(pages.api);
      const head = await commit('many/0');
      for (let number = 1; number < 5; number += 1) await branch(`many/${number}`, head);
      const pulls = [];
      for (let number = 0; number < 5; number += 1)
        pulls.push(await forge.open({ ...wanted, head: `many/${number}` }, NO_SIGNAL));
      expect(await forge.listOpen('main', 100, NO_SIGNAL)).toHaveLength(5);
      expect(await forge.listUpdated('1970-01-01T00:00:00Z', 100, NO_SIGNAL)).toHaveLength(5);

      const number = pulls[0]?.number ?? 0;
      for (let at = 0; at < 4; at += 1) await review(names.ben, number, 'comment');
      await review(names.anna, number, 'request-changes');
      const reviews = await forge.reviews(number, NO_SIGNAL);
      expect(reviews.map(({ author, state }) => [author, state])).toEqual([[names.anna, 'changes-requested']]);

      const labels = ['a', 'b', 'c', 'd', 'e'];
      for (const name of labels) await gitea.api('POST', `${path}/labels`, { name, color: '#ff0000' });
      await forge.addLabels(await forge.get(number, NO_SIGNAL), ['e'], NO_SIGNAL);
      expect(await gitea.api('GET', `${path}/labels?limit=50`)).toHaveLength(labels.length);

      const set = labels.map((name) => ({ name, state: 'pending' as const, title: 'waits' }));
      await forge.setChecks(head, set, NO_SIGNAL);
      await forge.setChecks(head, set, NO_SIGNAL);
      expect((await checks(head)).written).toBe(set.length);
    } finally {
      await close();
      await pages.close();
    }
  });

  test('a pull request with a body of many megabytes hides no other one', async () => {
    const { forge, path, names, openFromFork, commit, close } = await open();
    try {
      await commit('proposed/first');
      const first = await forge.open({ ...wanted, head: 'proposed/first' }, NO_SIGNAL);
      const long = await openFromFork(names.ben, 'long');
      await gitea.api('PATCH', `${path}/pulls/${long}`, { body: 'x'.repeat(9 * 1024 * 1024) });
      await commit('proposed/last');
      const last = await forge.open({ ...wanted, head: 'proposed/last' }, NO_SIGNAL);
      for (const list of [
        await forge.listOpen('main', 100, NO_SIGNAL),
        await forge.listUpdated('1970-01-01T00:00:00Z', 100, NO_SIGNAL),
      ])
        expect(list.map(({ number }) => number).sort()).toEqual([first.number, last.number]);
      await expect(forge.get(long, NO_SIGNAL)).rejects.toMatchObject({ code: 'LimitExceeded' });
    } finally {
      await close();
    }
  });

  test('a push for review by a user who may only read is of no branch of the repository', async () => {
    const { forge, path, close } = await open();
    const folder = temporaryFolder();
    try {
      const name = path.split('/').at(-1) ?? '';
      const reader = await gitea.createUser('pulls-reader');
      await gitea.api('PUT', `${path}/collaborators/${reader.username}`, { permission: 'read' });
      const address = gitea.addressOf(name).replace('://', `://${reader.username}:${reader.password}@`);
      const run = (...args: string[]) =>
        execFileSync('git', ['-C', folder.path, ...args], { env: GIT_ENVIRONMENT, stdio: 'pipe' });
      run('clone', '--quiet', address, '.');
      run('commit', '--quiet', '--allow-empty', '-m', 'for review');
      expect(() => run('push', '--quiet', 'origin', 'HEAD:refs/heads/review')).toThrow();
      run('push', '--quiet', '-o', 'topic=review', '-o', 'title=review', 'origin', 'HEAD:refs/for/main');
      const [listed] = await forge.listOpen('main', 10, NO_SIGNAL);
      expect(listed?.head).toMatchObject({ isSameRepository: false });
      expect(await forge.get(listed?.number ?? 0, NO_SIGNAL)).toMatchObject({ head: { isSameRepository: false } });
    } finally {
      folder.remove();
      await close();
    }
  });

  test('that are opened at the same time share the lists that find those of other processes', async () => {
    const { at, path, commit, branch, close } = await open();
    const heads = Array.from({ length: 6 }, (_, number) => `proposed/${number}`);
    // All of them are opened before one knows that it is, however slow the host is.
    const all = Promise.withResolvers<void>();
    let opened = 0;
    const front = await startFront({
      answered: (request) => {
        if (request !== `POST /api/v1${path}/pulls`) return undefined;
        opened += 1;
        if (opened === heads.length) all.resolve();
        return all.promise;
      },
    });
    try {
      const forge = at(front.api);
      const head = await commit('proposed/0');
      for (const one of heads.slice(1)) await branch(one, head);
      const pulls = await Promise.all(heads.map((one) => forge.open({ ...wanted, head: one }, NO_SIGNAL)));
      expect(new Set(pulls.map(({ number }) => number)).size).toBe(heads.length);
      const lists = front.requests.filter(
        (request) => request.startsWith(`GET /api/v1${path}/pulls?state=open`) && request.includes('page=1&'),
      );
      // One for the first, and one for the others.
      expect(lists.length).toBeGreaterThan(0);
      expect(lists.length).toBeLessThanOrEqual(2);
    } finally {
      await close();
      await front.close();
    }
  });

  test('a pull request that was deleted is named', async () => {
    const { forge, path, commit, close } = await open();
    try {
      await commit('proposed/first');
      const { number } = await forge.open({ ...wanted, head: 'proposed/first' }, NO_SIGNAL);
      await gitea.api('DELETE', `${path}/issues/${number}`);
      const named = {
        code: 'NotFound',
        message: expect.stringMatching(`pulls/${number}: .*it does not exist`),
      };
      await expect(forge.get(number, NO_SIGNAL)).rejects.toMatchObject(named);
      await expect(forge.update(number, { body: 'x' }, NO_SIGNAL)).rejects.toMatchObject(named);
    } finally {
      await close();
    }
  });
});
