import { afterEach, beforeEach, expect, test } from 'vitest';
import { annotateEngine } from '../../../controllers/sync-trigger/annotate-engine.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import { sendJson, sendStatus, WireServer } from '../../kubernetes/testing.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';

const NOW = Date.parse('2026-01-02T03:04:05.678Z');
const { signal } = new AbortController();
const REPO = 'https://git.example.com/team/deploy';

let wire: WireServer;
let connection: Connection;
/** Of the requests that change something. */
let patches: { path: string; body: unknown }[];
beforeEach(async () => {
  wire = await new WireServer().start();
  connection = new Connection(wire.access(), { clock: systemClock });
  patches = [];
});
afterEach(async () => {
  await connection.close();
  await wire.stop();
});

function serve(objects: Readonly<Record<string, readonly object[]>>): void {
  wire.handle = ({ method, path, body }, response) => {
    if (method === 'PATCH') {
      patches.push({ path, body: JSON.parse(String(body)) });
      sendJson(response, 200, { metadata: { name: path.split('/').at(-1), namespace: 'x', resourceVersion: '2' } });
      return;
    }
    const items = objects[path.split('/').at(-1) ?? ''];
    if (items === undefined) sendStatus(response, 404, 'NotFound', 'there is none');
    else sendJson(response, 200, { kind: 'List', metadata: { resourceVersion: '1' }, items });
  };
}

const object = (name: string, spec: object) => ({ metadata: { name, namespace: 'n', resourceVersion: '1' }, spec });
const annotate = (engine: object, folders?: ReadonlySet<string>) => {
  const git = { repo: `${REPO}.git`, branch: 'main', directory: 'clusters/edge' };
  const spec = { selector: {}, git, engine } as never;
  const target = deliveryTargetKind.complete({ metadata: { name: 'edge' }, spec });
  return annotateEngine(target, new HttpClient({ connection, face: 'controller' }), NOW, signal, folders);
};

test('Argo CD refreshes the Applications of the target, and no others', async () => {
  const source = { repoURL: REPO, targetRevision: 'main', path: 'clusters/edge/web' };
  serve({
    applications: [
      object('web', { source }),
      object('branch', { source: { ...source, targetRevision: 'dev' } }),
      object('elsewhere', { source: { ...source, path: 'clusters/core' } }),
      object('foreign', { source: { ...source, repoURL: 'https://git.example.com/other' } }),
    ],
  });
  await annotate({ type: 'ArgoCD' });
  expect(patches).toEqual([
    {
      path: '/apis/argoproj.io/v1alpha1/namespaces/n/applications/web',
      body: { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } },
    },
  ]);
});

test('Argo CD generates the Applications of new packages, where an ApplicationSet reads the branch of the target', async () => {
  const git = { repoURL: REPO, revision: 'main', directories: [{ path: '*' }] };
  const list = { list: { elements: [] } };
  serve({
    applications: [],
    applicationsets: [
      object('edge', { generators: [{ git }] }),
      object('nested', { generators: [{ matrix: { generators: [list, { git: { ...git, revision: 'HEAD' } }] } }] }),
      object('branch', { generators: [{ git: { ...git, revision: 'dev' } }] }),
      object('list', { generators: [list] }),
    ],
  });
  await annotate({ type: 'ArgoCD' });
  const path = '/apis/argoproj.io/v1alpha1/namespaces/n/applicationsets';
  const body = { metadata: { annotations: { 'argocd.argoproj.io/application-set-refresh': 'true' } } };
  expect(patches).toEqual([
    { path: `${path}/edge`, body },
    { path: `${path}/nested`, body },
  ]);
});

test('of many Applications only those of changed folders are refreshed, and those above them', async () => {
  const names = Array.from({ length: 300 }, (_, index) => `clusters/edge/p${index}`);
  const source = (path: string) => ({ source: { repoURL: REPO, targetRevision: 'main', path } });
  serve({ applications: [...names, 'clusters/edge', '.'].map((path, index) => object(`a${index}`, source(path))) });
  await annotate({ type: 'ArgoCD' }, new Set(['clusters/edge/p250', 'clusters/edge/p7/inner']));
  expect(patches.map(({ path }) => path.split('/').at(-1)).toSorted()).toEqual(['a250', 'a300', 'a301', 'a7']);
  // A removed package has lost its Application.
  await annotate({ type: 'ArgoCD' }, new Set(['clusters/edge-gone']));
});

test('an Application that the target names in a cluster of its own is refreshed without a list', async () => {
  serve({});
  await annotate({ type: 'ArgoCD', name: 'edge', namespace: 'gitops', kubeconfigSecretRef: { name: 'own' } });
  expect(wire.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'PATCH /apis/argoproj.io/v1alpha1/namespaces/gitops/applications/edge',
  ]);
});

test('Flux fetches the GitRepositories of the target, which its Kustomizations follow', async () => {
  serve({
    gitrepositories: [
      object('deploy', { url: `${REPO}.git`, ref: { branch: 'main' } }),
      object('tag', { url: REPO, ref: { tag: 'v1' } }),
    ],
    kustomizations: [object('edge', { sourceRef: { kind: 'GitRepository', name: 'named' } })],
  });
  await annotate({ type: 'Flux' });
  await annotate({ type: 'Flux', selector: { matchLabels: { a: 'b' } }, kubeconfigSecretRef: { name: 'own' } });
  const body = { metadata: { annotations: { 'reconcile.fluxcd.io/requestedAt': '2026-01-02T03:04:05.678Z' } } };
  const path = '/apis/source.toolkit.fluxcd.io/v1/namespaces/n/gitrepositories';
  expect(patches).toEqual([
    { path: `${path}/deploy`, body },
    { path: `${path}/named`, body },
  ]);
});

test('in the cluster of Sluice, nothing of another repository is refreshed, also where the target names it', async () => {
  serve({
    applications: [object('foreign', { source: { repoURL: 'https://git.example.com/other', path: 'clusters/edge' } })],
    gitrepositories: [object('named', { url: 'https://git.example.com/other', ref: { branch: 'main' } })],
    kustomizations: [object('edge', { sourceRef: { kind: 'GitRepository', name: 'named' } })],
  });
  for (const type of ['ArgoCD', 'Flux'])
    await expect(annotate({ type, selector: {} })).rejects.toThrow(/of the target; check spec\.engine/);
  expect(patches).toEqual([]);
});

test('an engine without an object of the target is an error with the next step', async () => {
  serve({ applications: [] });
  await expect(annotate({ type: 'ArgoCD' })).rejects.toThrow(
    /has no applicationsets and no applications of the target; check spec\.engine/,
  );
});
