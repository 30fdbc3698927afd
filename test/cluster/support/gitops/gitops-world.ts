import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  deliveredIn,
  packagesDigest,
  TARGET_LABEL,
  targetLabelValue,
} from '../../../../src/delivery/delivered/delivered-package.ts';
import { compareText } from '../../../../src/delivery/path-rules.ts';
import { packageKey } from '../../../../src/delivery/selection/select-revisions.ts';
import type { DeliveryTarget } from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { PackageDelivery } from '../../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import { eventually } from '../../../support/api/eventually.ts';
import { KubeApi, type KubeObject } from '../../../support/api/kube-api.ts';
import { RunningUp } from '../../../support/api/running-up.ts';
import { git as runGit } from '../../../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../../support/git/git-server.ts';
import { bareWithCommit } from '../../../support/git/write-objects.ts';
import { ControlPlane } from '../control-plane.ts';
import { installDefinitions } from '../install-definitions.ts';
import type { ClusterPrograms } from '../programs.ts';
import { PackageAuthor } from './package-author.ts';
import { playNodes } from './play-nodes.ts';

const KINDS = {
  Repository: ['config.porch.kpt.dev/v1alpha1', 'repositories'],
  DeliveryTarget: ['sluice.dev/v1alpha1', 'deliverytargets'],
  PackageDelivery: ['sluice.dev/v1alpha1', 'packagedeliveries'],
  WavePlan: ['sluice.dev/v1alpha1', 'waveplans'],
  AnalysisTemplate: ['sluice.dev/v1alpha1', 'analysistemplates'],
  Secret: ['v1', 'secrets'],
} as const;

/** A target, as the tests of an engine define it. */
export interface TargetSettings {
  readonly name: string;
  /** Default: the name is the repository, with one directory below its root. */
  readonly directory?: string;
  readonly metadata?: object;
  /** Further fields of the spec; the packages that the target selects. */
  readonly spec: object;
}

/** A repository of a Git host, and the directory in it that a target writes. */
export interface DeliveredPlace {
  readonly name: string;
  readonly url: string;
  /** Without slashes at its ends. */
  readonly directory: string;
}

/**
 * What delivery needs around it: a cluster with a node, a Git host over HTTP, and `sluice up` with a repository of packages. Sluice runs outside
 * of the cluster, so that an engine sees nothing of it but commits.
 */
export class GitOpsWorld implements AsyncDisposable {
  readonly plane: ControlPlane;
  /** The cluster that the engine writes to. */
  readonly cluster: KubeApi;
  readonly git: GitServer;
  readonly sluice: RunningUp;
  readonly author: PackageAuthor;
  readonly #folder: string;

  private constructor(plane: ControlPlane, cluster: KubeApi, git: GitServer, sluice: RunningUp, folder: string) {
    this.plane = plane;
    this.cluster = cluster;
    this.git = git;
    this.sluice = sluice;
    this.author = new PackageAuthor(sluice.api, 'packages');
    this.#folder = folder;
  }

  static async start(programs: ClusterPrograms): Promise<GitOpsWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-gitops-'));
    const starts = [
      ControlPlane.start({ programs, controllerManager: true, kwok: true }),
      startGitServer({ root: folder }),
      RunningUp.start(join(folder, 'data'), { words: ['--allow-git-host', '127.0.0.1'] }),
    ] as const;
    const [plane, git, sluice] = await Promise.all(starts);
    const world = new GitOpsWorld(plane, await KubeApi.of(plane.kubeconfig), git, sluice, folder);
    try {
      await installDefinitions(plane.kubeconfig);
      await playNodes(world.cluster);
      const spec = { type: 'git', git: { repo: world.#newRepository('packages'), branch: 'main', directory: '/' } };
      await world.create('Repository', { metadata: { name: 'packages' }, spec });
      await world.#ready('Repository', 'packages');
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Creates an object of Sluice. */
  async create(kind: keyof typeof KINDS, body: object): Promise<void> {
    const [apiVersion] = KINDS[kind];
    const { status, text } = await this.sluice.api.post(collectionOf(kind), { apiVersion, kind, ...body });
    if (status !== 201) throw new Error(`Sluice refuses the ${kind}: ${text}`);
  }

  /** Creates a target with a repository of its own. */
  async target({ name, directory = `clusters/${name}`, metadata = {}, spec }: TargetSettings): Promise<DeliveredPlace> {
    const url = this.#newRepository(name);
    await this.create('DeliveryTarget', {
      metadata: { name, ...metadata },
      spec: { git: { repo: url, branch: 'main', directory: directory === '' ? '/' : directory }, ...spec },
    });
    return { name, url, directory };
  }

  /** Creates an empty repository on the Git host. */
  place(name: string, directory = ''): DeliveredPlace {
    return { name, url: this.#newRepository(name), directory };
  }

  async patchTarget(name: string, spec: object): Promise<void> {
    await this.patch('DeliveryTarget', name, { spec });
  }

  /** Changes an object of Sluice by a merge patch. */
  async patch(kind: keyof typeof KINDS, name: string, change: object): Promise<void> {
    const { status, text } = await this.sluice.api.patch(`${collectionOf(kind)}/${name}`, change);
    if (status !== 200) throw new Error(`Sluice refuses the change of the ${kind}: ${text}`);
  }

  async targetObject(name: string): Promise<KubeObject> {
    const { status, body, text } = await this.sluice.api.get(`${collectionOf('DeliveryTarget')}/${name}`);
    if (status !== 200) throw new Error(`cannot read target ${name}: ${text}`);
    return body;
  }

  /** Waits until a target has delivered exactly these packages, as `<package> v<revision>`. Returns the commit. */
  async delivered(name: string, packages: readonly string[]): Promise<string> {
    const wanted = packages.toSorted().join();
    const selector = encodeURIComponent(`${TARGET_LABEL}=${targetLabelValue(name)}`);
    const { status } = await eventually(
      async () => {
        const { body } = await this.sluice.api.list(`${collectionOf('PackageDelivery')}?labelSelector=${selector}`);
        const there = body.items.flatMap((one) => deliveredIn(one as unknown as PackageDelivery) ?? []);
        const target = await this.sluice.api.get(`${collectionOf('DeliveryTarget')}/${name}`);
        return { there, status: target.body.status as DeliveryTarget['status'] };
      },
      ({ there, status }) =>
        there
          .map((each) => `${each.package} v${each.revision}`)
          .toSorted()
          .join() === wanted &&
        // The status follows the objects.
        status?.packagesDigest === packagesDigest(there.sort((a, b) => compareText(packageKey(a), packageKey(b)))),
    );
    return status?.lastCommit ?? '';
  }

  /** The commit of the branch of a place. */
  headOf({ name }: DeliveredPlace): string {
    return runGit(join(this.#folder, `${name}.git`), ['rev-parse', 'main']);
  }

  /** The path of the repository of a place. */
  folderOf({ name }: DeliveredPlace): string {
    return join(this.#folder, `${name}.git`);
  }

  #newRepository(name: string): string {
    bareWithCommit(join(this.#folder, `${name}.git`));
    return `${this.git.url}/${name}.git`;
  }

  async #ready(kind: keyof typeof KINDS, name: string): Promise<void> {
    await eventually(
      () => this.sluice.api.get(`${collectionOf(kind)}/${name}`),
      ({ body }) => {
        const { conditions = [] } = (body.status ?? {}) as { conditions?: { type: string; status: string }[] };
        return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
      },
    );
  }

  /** `keepLogs` keeps the logs of the control plane. */
  async stop(options: { readonly keepLogs?: boolean } = {}): Promise<void> {
    this.cluster.close();
    await this.sluice.end();
    await this.git.close();
    await this.plane.stop(options);
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

function collectionOf(kind: keyof typeof KINDS): string {
  const [version, plural] = KINDS[kind];
  return `${version.includes('/') ? '/apis' : '/api'}/${version}/namespaces/default/${plural}`;
}
