import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { addToken } from '../../src/server/authentication/token-file.ts';
import { eventually } from '../support/api/eventually.ts';
import type { Answer, KubeApi } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';

export const RBAC = '/apis/rbac.authorization.k8s.io/v1';
/** The namespace that rights are given in. */
export const HERE = 'rights';
/** The one name that `of-one-name` has rights on. */
export const NAMED = 'the-one';
export const rbac = { apiGroup: 'rbac.authorization.k8s.io' };
export const bind = (name: string, kind: string, role: string, subject: object) => ({
  metadata: { name },
  roleRef: { ...rbac, kind, name: role },
  subjects: [subject],
});

/** Users by name, with their groups, and their bindings besides those of all users. */
export const USERS: Readonly<
  Record<string, { groups?: string[]; namespaced?: [kind: string, role: string]; everywhere?: string }>
> = {
  stranger: {},
  viewer: { namespaced: ['ClusterRole', 'view'] },
  editor: { namespaced: ['ClusterRole', 'edit'] },
  'package-editor': { namespaced: ['ClusterRole', 'sluice:package-editor'] },
  approver: { namespaced: ['ClusterRole', 'sluice:approver'] },
  'local-admin': { namespaced: ['ClusterRole', 'admin'] },
  'of-one-name': { namespaced: ['Role', 'of-one-name'] },
  'watcher-of-all': { everywhere: 'view' },
  member: { groups: ['team'] },
  'system:serviceaccount:rights:robot': { groups: ['system:serviceaccounts', 'system:serviceaccounts:rights'] },
  root: { groups: ['system:masters'] },
};

/** A server with these users. */
export class UsersFixture {
  readonly up: RunningUp;
  readonly #clients = new Map<string, KubeApi>();

  private constructor(up: RunningUp) {
    this.up = up;
  }

  static async start(data: string): Promise<UsersFixture> {
    const fixture = new UsersFixture(await RunningUp.start(data));
    await fixture.#prepare();
    return fixture;
  }

  get admin(): KubeApi {
    return this.up.api;
  }

  /** The client of a user. */
  as(user: string): KubeApi {
    const client = this.#clients.get(user);
    if (client === undefined) throw new Error(`there is no user ${user}`);
    return client;
  }

  async create(path: string, body: object): Promise<void> {
    const { status, text } = await this.admin.post(path, body);
    expect(status, text).toBe(201);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    const failures = this.up.ownFailures();
    await this.up.end();
    expect(failures).toEqual([]);
  }

  async #prepare(): Promise<void> {
    for (const name of [HERE, 'elsewhere']) await this.create('/api/v1/namespaces', { metadata: { name } });
    const here = `${RBAC}/namespaces/${HERE}`;
    const all = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] };
    const named = [{ ...all, resourceNames: [NAMED] }];
    await this.create(`${here}/roles`, { metadata: { name: 'of-one-name' }, rules: named });
    const approvals = { apiGroups: ['porch.kpt.dev'], resources: ['*/approval'], verbs: ['update'] };
    await this.create(`${here}/roles`, { metadata: { name: 'team' }, rules: [{ ...all, verbs: ['list'] }, approvals] });
    await this.create(`${here}/rolebindings`, bind('team', 'Role', 'team', { ...rbac, kind: 'Group', name: 'team' }));
    const robot = { kind: 'ServiceAccount', namespace: HERE, name: 'robot' };
    await this.create(`${here}/rolebindings`, bind('robot', 'ClusterRole', 'edit', robot));
    for (const [name, { groups = [], namespaced, everywhere }] of Object.entries(USERS)) {
      const token = await addToken(this.up.folder.tokens, { user: name, groups }, systemClock);
      this.#clients.set(name, this.admin.as({ token }));
      const subject = { ...rbac, kind: 'User', name };
      if (namespaced !== undefined) await this.create(`${here}/rolebindings`, bind(name, ...namespaced, subject));
      if (everywhere !== undefined)
        await this.create(`${RBAC}/clusterrolebindings`, bind(name, 'ClusterRole', everywhere, subject));
    }
    // The last token and the last binding have been read once they take effect.
    await allowed(() => this.as('root').get('/api/v1/namespaces'));
    await allowed(() => this.as('watcher-of-all').get('/api/v1/configmaps'));
  }
}

/** The users and their server, for the tests of one file. */
export function useUsers(): { readonly current: UsersFixture } {
  let folder = '';
  let fixture: UsersFixture | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-rights-'));
    fixture = await UsersFixture.start(join(folder, 'data'));
  });
  afterAll(async () => {
    await fixture?.stop();
    await rm(folder, { recursive: true });
  });
  return {
    get current() {
      if (fixture === undefined) throw new Error('the users exist only while the tests run');
      return fixture;
    },
  };
}

/** Waits until the server permits a request of a user. */
export async function allowed(ask: () => Promise<Answer>): Promise<void> {
  await eventually(ask, ({ status }) => status < 300);
}
