import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { eventually } from '../../../support/api/eventually.ts';
import type { Answer, KubeApi, KubeObject } from '../../../support/api/kube-api.ts';
import { freePort } from '../../../support/free-port.ts';
import { Component } from '../component.ts';
import type { ControlPlane } from '../control-plane.ts';
import { API_SERVICE, PACKAGE_VERSION } from '../extension-server.ts';
import { DEFINITIONS } from '../install-definitions.ts';
import type { PorchProgram } from './porch-program.ts';

const CRDS = [
  'api/porchconfig/v1alpha1/config.porch.kpt.dev_repositories.yaml',
  'internal/api/porchinternal/v1alpha1/config.porch.kpt.dev_packagerevs.yaml',
  'controllers/config/crd/bases/config.porch.kpt.dev_packagevariants.yaml',
];
const NAMESPACE = 'porch-system';
export const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces';

/** Porch's own API server behind the aggregator of a control plane, which must have none of Sluice's definitions. */
export class PorchServer implements AsyncDisposable {
  readonly #component: Component;
  readonly #api: KubeApi;

  private constructor(component: Component, api: KubeApi) {
    this.#component = component;
    this.#api = api;
  }

  /** Installs Porch, and resolves when it is available. */
  static async start({ path, module }: PorchProgram, plane: ControlPlane, api: KubeApi): Promise<PorchServer> {
    for (const file of CRDS)
      for (const definition of loadAll(await readFile(join(module, file), 'utf8')) as KubeObject[])
        await done(() => api.post(DEFINITIONS, definition));
    const port = await freePort();
    const folder = join(plane.folder, 'porch');
    await mkdir(folder);
    const component = Component.start({
      ...{ name: 'porch', program: path, log: join(plane.folder, 'logs', 'porch.log') },
      flags: [
        ...['--kubeconfig', plane.kubeconfig, '--bind-address', '127.0.0.1', '--secure-port', String(port)],
        ...['--cert-dir', join(folder, 'certificates'), '--cache-directory', join(folder, 'cache')],
        // It must have the address of a function runner; packages without a pipeline need none.
        ...['--repo-sync-frequency', '5s', '--function-runner', '127.0.0.1:9'],
      ],
    });
    const server = new PorchServer(component, api);
    await done(() => api.post('/api/v1/namespaces', { metadata: { name: NAMESPACE } }));
    const service = { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] };
    const services = `/api/v1/namespaces/${NAMESPACE}/services`;
    await done(() => api.post(services, { metadata: { name: 'api' }, spec: service }));
    const spec = {
      ...{ group: 'porch.kpt.dev', version: 'v1alpha1', groupPriorityMinimum: 1000, versionPriority: 15 },
      ...{ insecureSkipTLSVerify: true, service: { namespace: NAMESPACE, name: 'api', port } },
    };
    const name = API_SERVICE.split('/').at(-1);
    await done(() => api.post(API_SERVICE.slice(0, API_SERVICE.lastIndexOf('/')), { metadata: { name }, spec }));
    await eventually(
      () => server.#get(`${PACKAGE_VERSION}/namespaces/default/packagerevisions`),
      ({ status }) => status === 200,
    );
    return server;
  }

  /** Registers a repository, and waits until Porch has read it. */
  async register(namespace: string, name: string, spec: object): Promise<void> {
    const path = `${REPOSITORIES}/${namespace}/repositories`;
    const identity = { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name } };
    await done(() => this.#api.post(path, { ...identity, spec }));
    await eventually(
      () => this.#get(`${REPOSITORIES}/${namespace}/repositories/${name}`),
      ({ text }) => /"type":"Ready"/.test(text) && /"status":"True"/.test(text),
    );
  }

  /** Creates an empty package as a draft; returns its name. */
  async init(namespace: string, repository: string, packageName: string, workspaceName: string): Promise<string> {
    return this.#create(namespace, {
      ...{ packageName, repository, workspaceName, lifecycle: 'Draft' },
      tasks: [{ type: 'init', init: { description: `${packageName} of a test` } }],
    });
  }

  /** Creates a draft from a published revision. */
  async copy(namespace: string, source: string, workspaceName: string): Promise<string> {
    const { spec } = await this.#revision(namespace, source);
    const { packageName, repository } = spec as Record<string, string>;
    const tasks = [{ type: 'edit', edit: { sourceRef: { name: source } } }];
    return this.#create(namespace, { packageName, repository, workspaceName, lifecycle: 'Draft', tasks });
  }

  /** Changes the lifecycle, through `approval` where that is what Porch's clients use. */
  async setLifecycle(namespace: string, name: string, ...steps: readonly string[]): Promise<void> {
    for (const lifecycle of steps) {
      const revision = await this.#revision(namespace, name);
      const path = `${PACKAGE_VERSION}/namespaces/${namespace}/packagerevisions/${name}`;
      const spec = { ...(revision.spec as object), lifecycle };
      await done(() => this.#api.put(lifecycle === 'Proposed' ? path : `${path}/approval`, { ...revision, spec }));
    }
  }

  async setMetadata(namespace: string, name: string, metadata: object): Promise<void> {
    const revision = await this.#revision(namespace, name);
    const path = `${PACKAGE_VERSION}/namespaces/${namespace}/packagerevisions/${name}`;
    await done(() => this.#api.put(path, { ...revision, metadata: { ...revision.metadata, ...metadata } }));
  }

  /** Replaces files of a draft. */
  async setFiles(namespace: string, name: string, files: Readonly<Record<string, string>>): Promise<void> {
    const path = `${PACKAGE_VERSION}/namespaces/${namespace}/packagerevisionresources/${name}`;
    const { body } = await done(() => this.#get(path));
    const spec = body.spec as { readonly resources: object };
    await done(() => this.#api.put(path, { ...body, spec: { ...spec, resources: { ...spec.resources, ...files } } }));
  }

  async #create(namespace: string, spec: object): Promise<string> {
    const path = `${PACKAGE_VERSION}/namespaces/${namespace}/packagerevisions`;
    const identity = { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace } };
    return (await done(() => this.#api.post(path, { ...identity, spec }))).body.metadata.name;
  }

  async #revision(namespace: string, name: string): Promise<KubeObject> {
    return (await done(() => this.#get(`${PACKAGE_VERSION}/namespaces/${namespace}/packagerevisions/${name}`))).body;
  }

  #get(path: string): Promise<Answer> {
    this.#component.expectRunning();
    return this.#api.get(path);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#component.stop();
  }
}

/** The answer, which must be a success. */
async function done(request: () => Promise<Answer>): Promise<Answer> {
  // Porch polls its repositories while it serves requests, and a ref that it writes just then has no content.
  const answer = await eventually(request, ({ status, text }) => status < 500 || !text.includes('ref file is empty'));
  if (answer.status >= 300) throw new Error(`the server responded with ${answer.status}: ${answer.text}`);
  return answer;
}
