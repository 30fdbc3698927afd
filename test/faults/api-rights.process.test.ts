import { appendFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { hashOfToken } from '../../src/server/authentication/token-file.ts';
import type { Answer, KubeApi, KubeObject } from '../support/api/kube-api.ts';
import { mayDo, type Question, type RbacState } from './rbac-evaluator.ts';
import { HERE, NAMED, RBAC, USERS, useUsers } from './users-fixture.ts';

/** Concurrent requests. */
const LANES = 16;

const users = useUsers();

interface Resource {
  readonly groupVersion: string;
  /** With its sub-resource. */
  readonly resource: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

async function resources(): Promise<Resource[]> {
  const { body } = await users.current.admin.get<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis');
  const versions = ['v1', ...body.groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion))];
  const found: Resource[] = [];
  for (const groupVersion of versions) {
    const answer = await users.current.admin.get<{
      resources: { name: string; namespaced: boolean; verbs: string[] }[];
    }>(`${groupVersion === 'v1' ? '/api' : '/apis'}/${groupVersion}`);
    for (const { name, ...rest } of answer.body.resources) found.push({ groupVersion, resource: name, ...rest });
  }
  return found;
}

interface Attempt {
  readonly method: string;
  readonly url: string;
  readonly question: Omit<Question, 'user' | 'groups'>;
}

const METHODS: Readonly<Record<string, string>> = {
  ...{ get: 'GET', list: 'GET', watch: 'GET', create: 'POST', update: 'PUT', patch: 'PATCH' },
  ...{ delete: 'DELETE', deletecollection: 'DELETE' },
};

/** Requests for every verb and place of a resource that change nothing, even if they are allowed. */
function* attemptsOn({ groupVersion, resource, namespaced, verbs }: Resource): Generator<Attempt> {
  const [plural = '', sub] = resource.split('/');
  const slash = groupVersion.indexOf('/');
  const group = slash < 0 ? '' : groupVersion.slice(0, slash);
  const prefix = `${slash < 0 ? '/api' : '/apis'}/${groupVersion}`;
  for (const verb of verbs) {
    const ofMany = ['list', 'watch', 'create', 'deletecollection'].includes(verb);
    // Some resources are created at a name's sub-resource, and reviews are processed in every namespace.
    const names = ofMany && sub === undefined ? [''] : ['absent', NAMED];
    const namespaces = !namespaced
      ? ['']
      : ofMany && verb !== 'create' && verb !== 'deletecollection'
        ? [HERE, 'elsewhere', '']
        : [HERE, 'elsewhere'];
    for (const namespace of namespaces)
      for (const name of names) {
        const place = namespace === '' ? '' : `/namespaces/${namespace}`;
        const path = [
          `${prefix}${place}/${plural}`,
          ...(name === '' ? [] : [name]),
          ...(sub === undefined ? [] : [sub]),
        ].join('/');
        // A namespace is in the namespace of its name.
        const within = plural === 'namespaces' && group === '' && name !== '' ? name : namespace;
        // The selector is invalid, so that nothing is watched or deleted.
        const query = ofMany && verb !== 'create' ? `?labelSelector=%3D${verb === 'watch' ? '&watch=true' : ''}` : '';
        yield {
          method: METHODS[verb] ?? verb.toUpperCase(),
          url: `${path}${query}`,
          question: { verb, group, resource, namespace: within, name },
        };
      }
  }
}

/** Whether the response refuses for lack of rights; other refusals come from the rules of the kind. */
function decisionOf({ status, text }: Answer<unknown>): string {
  if (status === 401) return 'unknown';
  if (status === 403 && /"message":"[^"]*(\\"[^"]*)*User \\"[^"]*\\" cannot /.test(text)) return 'refused';
  return status >= 500 ? `failed ${status}` : 'allowed';
}

async function decide(client: KubeApi, { method, url }: Attempt): Promise<string> {
  const body = ['POST', 'PUT', 'PATCH'].includes(method) ? '{' : undefined;
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return decisionOf(
    await client.send(method, url, body === undefined ? {} : { body, headers: { 'content-type': type } }),
  );
}

async function inLanes<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

async function rbacState(): Promise<RbacState> {
  const all = async (resource: string, kind: string) =>
    (await users.current.admin.list(`${RBAC}/${resource}`)).body.items.map((item): KubeObject => ({ ...item, kind }));
  return {
    roles: [...(await all('roles', 'Role')), ...(await all('clusterroles', 'ClusterRole'))],
    bindings: [
      ...(await all('rolebindings', 'RoleBinding')),
      ...(await all('clusterrolebindings', 'ClusterRoleBinding')),
    ],
  };
}

describe('rights', () => {
  test('match the roles, for every user, verb, resource and place', async () => {
    const state = await rbacState();
    const attempts = (await resources()).flatMap((resource) => [...attemptsOn(resource)]);
    for (const path of [
      '/metrics',
      '/version',
      '/livez',
      '/readyz',
      '/openapi/v2',
      '/openapi/v3',
      '/api',
      '/apis',
      '/logs',
    ])
      attempts.push({ method: 'GET', url: path, question: { verb: 'get', path } });
    const wrong: string[] = [];
    const counts = new Map<string, number>();
    const cases = Object.keys(USERS).flatMap((user) => attempts.map((attempt) => ({ user, attempt })));
    await inLanes(cases, async ({ user, attempt }) => {
      const groups = [...(USERS[user]?.groups ?? []), 'system:authenticated'];
      const expected = mayDo(state, { ...attempt.question, user, groups }) ? 'allowed' : 'refused';
      const decision = await decide(users.current.as(user), attempt);
      counts.set(`${user} ${decision}`, (counts.get(`${user} ${decision}`) ?? 0) + 1);
      // Health is public.
      if (decision !== expected && !['/livez', '/readyz'].includes(attempt.url))
        wrong.push(`${user}: ${attempt.method} ${attempt.url}: ${decision}, not ${expected}`);
    });
    expect(wrong).toEqual([]);
    expect(cases.length).toBeGreaterThan(3000);
    for (const user of Object.keys(USERS).filter((name) => name !== 'root')) {
      expect(counts.get(`${user} refused`), user).toBeGreaterThan(0);
      expect(counts.get(`${user} allowed`), user).toBeGreaterThan(0);
    }
    expect(counts.get('root refused')).toBeUndefined();
  });

  test('can be granted only by users who have them', async () => {
    const expired = `sluice_${'e'.repeat(43)}`;
    const line = `sha256:${hashOfToken(expired)},root,,"system:masters",2020-01-01T00:00:00Z\n`;
    await appendFile(users.current.up.folder.tokens, line);
    const attempts = (await resources()).flatMap((resource) => [...attemptsOn(resource)]);
    for (const identity of [{}, { token: 'sluice_unknown' }, { token: expired }]) {
      const client = users.current.admin.as(identity);
      const decisions = new Set<string>();
      await inLanes(attempts, async (attempt) => {
        decisions.add(await decide(client, attempt));
      });
      expect([...decisions]).toEqual(['unknown']);
      client.close();
    }
  });
});
