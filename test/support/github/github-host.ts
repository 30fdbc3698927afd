import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Check } from '../../../src/forge/forge.ts';
import { GITHUB_CONTENT } from '../../../src/forge/github/content-requests.ts';
import type { GitHubCredentials } from '../../../src/forge/github/github-client.ts';
import { GitHubForge } from '../../../src/forge/github/github-forge.ts';
import { ForgeBudgets } from '../../../src/forge/http/forge-budgets.ts';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../../src/git/network/git-network.ts';
import type { ForgeHost } from '../forge/forge-host.ts';
import { messagesOf } from '../forge/merging-conformance.ts';
import { APP, type GitHubServer } from './github-server.ts';

const OWNER = 'acme';

export interface ConnectOptions {
  readonly token?: 'unknown' | 'read-only';
  readonly name?: string;
  readonly timeoutMs?: number;
  /** Default: true. */
  readonly usesIssues?: boolean;
}

/** A host with one repository, in which Sluice is an App or a user. */
export type GitHubHost = ForgeHost & {
  readonly connectWith: (options: ConnectOptions) => GitHubForge;
  readonly repository: ReturnType<GitHubServer['createRepository']>;
};

/** Budgets that count what GitHub limits, and permit all of it. */
export function countingBudgets(): ForgeBudgets {
  return new ForgeBudgets(systemClock, { ...GITHUB_CONTENT, perMinute: 100_000, perHour: 100_000 });
}

/** Makes a repository on the checked server, in which Sluice is an App or a user. */
export async function openGitHub(
  server: GitHubServer,
  kind: 'app' | 'user',
  budgets?: ForgeBudgets,
): Promise<GitHubHost> {
  const name = `packages-${randomUUID().slice(0, 8)}`;
  const sluice = kind === 'app' ? APP.user : 'sluice-user';
  const [anna, ben] = ['anna', 'ben'];
  const repository = server.createRepository(OWNER, name, [OWNER, anna, ben, 'sluice-user', APP.user]);
  repository.teams.add('reviewers');
  const team = `team-${name}`;
  const tokens = {
    unknown: 'ghp_0123456789abcdef0123456789abcdef0123',
    'read-only': server.createToken('sluice-user', 'read'),
    own: server.createToken('sluice-user'),
  };
  const users = new Map([OWNER, anna, ben, sluice].map((user) => [user, server.createToken(user)]));
  const forges: GitHubForge[] = [];

  const connect = (options: ConnectOptions): GitHubForge => {
    const credentials: GitHubCredentials =
      kind === 'app' && options.token === undefined
        ? { app: { id: APP.id, privateKey: server.privateKey } }
        : { token: tokens[options.token ?? 'own'] };
    const forge = new GitHubForge({
      ...{ api: server.api, owner: OWNER, name: options.name ?? name, network: DEFAULT_NETWORK },
      ...{ credentials: async () => credentials, tokenName: 'Secret default/github' },
      ...(budgets === undefined ? {} : { budgets }),
      mayMerge: true,
      usesTeams: true,
      usesIssues: options.usesIssues ?? true,
      ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    });
    forges.push(forge);
    return forge;
  };
  /** Calls the API as a user. Returns the status and the JSON. */
  const call = async (user: string, method: string, path: string, body?: object) => {
    const response = await fetch(`${server.api}/repos/${OWNER}/${name}${path}`, {
      ...{ method, headers: { authorization: `Bearer ${users.get(user)}` } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as { number: number } };
  };
  const expectDone = async (...request: Parameters<typeof call>) => {
    const result = await call(...request);
    expect(result.status, JSON.stringify(result.json)).toBeLessThan(300);
    return result.json;
  };

  return {
    connectWith: connect,
    repository,
    forge: connect({}),
    createsContent: true,
    names: { sluice, anna, ben, team: 'reviewers', permissions: { writer: true, other: false } },
    secrets: [...Object.values(tokens), 'ghs_', server.privateKey.slice(40, 80)],
    connect: async (other) => connect(other),
    commit: async (branch, file) => repository.commit(branch, file),
    permitMethods: async (methods) => {
      repository.methods = methods;
    },
    protect: async (branch, { check, upToDate = false }) =>
      void repository.protections.set(branch, { isStrict: upToDate, ...(check === undefined ? {} : { check }) }),
    log: async (branch, count) => messagesOf(repository.gitDir, branch, count),
    branch: async (branch, commit) => repository.branch(branch, commit),
    deleteBranch: async (branch) => repository.deleteBranch(branch),
    openFromFork: async (user, branch) => {
      server.fork(repository, user).commit(branch);
      const wanted = { head: `${user}:${branch}`, base: 'main', title: 'from a fork' };
      return (await expectDone(user, 'POST', '/pulls', wanted)).number;
    },
    review: async (user, number, verdict) => {
      const event = { approve: 'APPROVE', 'request-changes': 'REQUEST_CHANGES', comment: 'COMMENT' }[verdict];
      await expectDone(user, 'POST', `/pulls/${number}/reviews`, { event, body: 'a review' });
    },
    dismiss: async (user, number, review) =>
      void (await expectDone(user, 'PUT', `/pulls/${number}/reviews/${review}/dismissals`, { message: 'outdated' })),
    join: async (user) => {
      repository.members.set(team, repository.members.get(team) ?? new Map());
      repository.members.get(team)?.set(user, 'active');
      return `${OWNER}/${team}`;
    },
    leave: async (user) => void repository.members.get(team)?.delete(user),
    comment: async (user, number, body) =>
      void (await expectDone(user, 'POST', `/issues/${number}/comments`, { body })),
    editComment: async (user, id, body) => void (await expectDone(user, 'PATCH', `/issues/comments/${id}`, { body })),
    openIssue: async (user, title, body) => (await expectDone(user, 'POST', '/issues', { title, body })).number,
    changeIssue: async (user, number, change) => void (await expectDone(user, 'PATCH', `/issues/${number}`, change)),
    setState: async (user, number, state) => void (await expectDone(user, 'PATCH', `/pulls/${number}`, { state })),
    setBase: async (user, number, base) => void (await expectDone(user, 'PATCH', `/pulls/${number}`, { base })),
    merge: async (user, number, sha) => (await call(user, 'PUT', `/pulls/${number}/merge`, { sha })).status === 200,
    schedule: async (user, number) => {
      const pull = repository.pulls.find((one) => one.number === number);
      if (pull !== undefined) repository.setAutoMerge(pull, user);
    },
    label: async (user, number, label) =>
      void (await expectDone(user, 'POST', `/issues/${number}/labels`, { labels: [label] })),
    labels: async () => [...repository.labels.keys()],
    checks: async (commit) => {
      const runs = repository.runs.filter((run) => run.commit === commit);
      const statuses = repository.statuses.filter((status) => status.commit === commit);
      const all = [
        ...runs.map(({ name: check, conclusion, title }) => ({ name: check, state: conclusion ?? 'pending', title })),
        ...statuses.map(({ context, state, description }) => ({ name: context, state, title: description ?? '' })),
      ] as Check[];
      const current = [...new Map(all.map((check) => [check.name, check])).values()];
      return { current, written: repository.written };
    },
    text: async (commit, check) =>
      repository.runs.findLast((one) => one.commit === commit && one.name === check)?.text ?? undefined,
    annotations: async (commit, check) => {
      const run = repository.runs.findLast((one) => one.commit === commit && one.name === check);
      const status = repository.statuses.findLast((one) => one.commit === commit && one.context === check);
      if (run === undefined) return status?.url ?? '';
      return run.annotations.map(({ path, start_line: line, annotation_level: level, title = '', message }) => ({
        ...{ path, line, level, title, message },
      }));
    },
    requested: async (number) => {
      const pull = repository.pulls.find((one) => one.number === number);
      return [...(pull?.requestedUsers ?? []), ...(pull?.requestedTeams ?? [])];
    },
    close: async () => {
      for (const forge of forges) await forge.close();
      server.fault = () => undefined;
    },
  };
}
