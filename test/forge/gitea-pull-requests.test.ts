import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import { GiteaForge } from '../../src/forge/gitea/gitea-forge.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { describeForge, type ForgeHost } from '../support/forge-conformance.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, type Login, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

/** As many as Gitea returns at most. */
const PAGE_SIZE = 50;

let users: Promise<ReadonlyMap<string, Login>> | undefined;
let repositories = 0;

function createUsers(): Promise<ReadonlyMap<string, Login>> {
  const names = ['pulls-sluice', 'pulls-anna', 'pulls-ben'];
  return Promise.all(names.map(async (name) => [name, await gitea.createUser(name)] as const)).then(
    (all) => new Map(all),
  );
}

async function open(): Promise<ForgeHost> {
  users ??= createUsers();
  const logins = await users;
  repositories += 1;
  const name = `pulls-${repositories}`;
  await gitea.createRepository(name);
  for (const user of logins.keys()) await gitea.addWriter(user, name);
  const sluice = 'pulls-sluice';
  const token = await gitea.createToken(sluice, name, ['write:repository', 'write:issue']);
  const readOnly = await gitea.createToken(sluice, `${name}-reads`, ['read:repository', 'read:issue']);
  const tokens = { own: token, unknown: '0123456789abcdef0123456789abcdef01234567', 'read-only': readOnly };
  const path = `/repos/${OWNER.username}/${name}`;
  const forges: GiteaForge[] = [];

  const connect = (options: { token?: 'unknown' | 'read-only'; name?: string }) => {
    const forge = new GiteaForge({
      ...{ api: `${gitea.url}/api/v1`, owner: OWNER.username, name: options.name ?? name, network: DEFAULT_NETWORK },
      ...{ token: async () => tokens[options.token ?? 'own'], tokenName: 'Secret default/gitea' },
    });
    forges.push(forge);
    return forge;
  };
  const as = (user: string): Login => logins.get(user) ?? OWNER;
  const branches = async () =>
    ((await gitea.api('GET', `${path}/branches?limit=50`)) as { name: string }[]).map((branch) => branch.name);
  let files = 0;
  /** Adds a file to a branch. Returns the commit. */
  const write = async (repository: string, user: Login, branch: string, isNew: boolean): Promise<string> => {
    files += 1;
    const content = Buffer.from(String(files)).toString('base64');
    const target = isNew ? { branch: 'main', new_branch: branch } : { branch };
    const made = await gitea.api('POST', `${repository}/contents/file-${files}`, { content, ...target }, user);
    return (made as { commit: { sha: string } }).commit.sha;
  };

  return {
    forge: connect({}),
    names: { sluice, anna: 'pulls-anna', ben: 'pulls-ben' },
    secrets: Object.values(tokens),
    connect: async (other) => connect(other),
    commit: async (branch) => write(path, OWNER, branch, !(await branches()).includes(branch)),
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
    comment: async (user, number, body) =>
      void (await gitea.api('POST', `${path}/issues/${number}/comments`, { body }, as(user))),
    setState: async (user, number, state) =>
      void (await gitea.api('PATCH', `${path}/pulls/${number}`, { state }, as(user))),
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
