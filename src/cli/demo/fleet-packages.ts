import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../resource/kinds/porch/package-revision-resources.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';

const NAMESPACE = 'default';
const ATTEMPTS = 20;

/** What users do with packages in the demonstration of a fleet. */
export class FleetPackages {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Publishes a new package; undefined if its repository is not open yet. */
  async publishNew(repository: string, path: string, files: ReadonlyMap<string, string>): Promise<true | undefined> {
    const name = `${repository}.${path}.v1`;
    const spec = { repository, packageName: path, workspaceName: 'v1', lifecycle: 'Draft' as const };
    const task = { type: 'init' as const, init: { description: path } };
    try {
      const metadata = { namespace: NAMESPACE };
      await this.#client.create(packageRevisionKind, { metadata, spec: { ...spec, tasks: [task] } });
    } catch (error) {
      if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Unavailable')) return undefined;
      throw error;
    }
    await this.#write(name, (before) => ({ ...before, ...Object.fromEntries(files) }));
    await this.#publish(name);
    return true;
  }

  /** Publishes the next revision of a package with these files changed. */
  async edit(
    repository: string,
    path: string,
    edits: Readonly<Record<string, (text: string) => string>>,
  ): Promise<void> {
    const fieldSelector = `spec.repository=${repository},spec.packageName=${path}`;
    const { items } = await this.#client.list(packageRevisionKind, { namespace: NAMESPACE, fieldSelector });
    const published = items.filter(({ spec }) => (spec.revision ?? 0) > 0);
    const [latest] = published.sort((a, b) => (b.spec.revision ?? 0) - (a.spec.revision ?? 0));
    if (latest === undefined) throw new Error(`${path} is not published`);
    const created = await this.#client.create(packageRevisionKind, {
      metadata: { namespace: NAMESPACE },
      spec: {
        ...{ repository, packageName: path, workspaceName: `v${published.length + 1}`, lifecycle: 'Draft' },
        tasks: [{ type: 'edit', edit: { sourceRef: { name: latest.metadata.name } } }],
      },
    });
    const { name } = created.metadata;
    await this.#write(name, (before) => {
      const changed = Object.entries(edits).map(([file, change]) => [file, change(before[file] ?? '')]);
      return { ...before, ...Object.fromEntries(changed) };
    });
    await this.#publish(name);
  }

  /** Number of packages of the fleet with a revision of this workspace, in this state or a later one. */
  async number(workspace: string, lifecycle?: 'Proposed'): Promise<number> {
    const fieldSelector = `spec.repository=fleet,spec.workspaceName=${workspace}`;
    const { items } = await this.#client.list(packageRevisionKind, { namespace: NAMESPACE, fieldSelector });
    return items.filter(({ spec }) => lifecycle === undefined || spec.lifecycle !== 'Draft').length;
  }

  async text(name: string, file: string): Promise<string> {
    const { spec } = await this.#client.get(packageRevisionResourcesKind, { namespace: NAMESPACE, name });
    return spec.resources?.[file] ?? '';
  }

  async #write(name: string, change: (files: Record<string, string>) => Record<string, string>): Promise<void> {
    await attempt(async () => {
      const resources = await this.#client.get(packageRevisionResourcesKind, { namespace: NAMESPACE, name });
      const spec = { ...resources.spec, resources: change({ ...resources.spec.resources }) };
      await this.#client.update(packageRevisionResourcesKind, { ...resources, spec });
    });
  }

  /** Controllers may take the steps as well. */
  async #publish(name: string): Promise<void> {
    await attempt(async () => {
      for (const lifecycle of ['Proposed', 'Published'] as const) {
        const revision = await this.#client.get(packageRevisionKind, { namespace: NAMESPACE, name });
        if (revision.spec.lifecycle === lifecycle || revision.spec.lifecycle === 'Published') continue;
        await this.#step(revision, lifecycle);
      }
    });
  }

  async #step(revision: Stored<PackageRevision>, lifecycle: 'Proposed' | 'Published'): Promise<void> {
    const next = { ...revision, spec: { ...revision.spec, lifecycle } };
    if (lifecycle === 'Proposed') await this.#client.update(packageRevisionKind, next);
    else await this.#client.subResource('approval').update(packageRevisionKind, next, { reason: keyOf(revision).name });
  }
}

/** Repeats what lost against a controller that wrote at the same time. */
async function attempt(work: () => Promise<void>): Promise<void> {
  for (let count = 1; ; count++) {
    try {
      await work();
      return;
    } catch (error) {
      const isRace = isSluiceError(error, 'Conflict') || isSluiceError(error, 'Refused');
      if (!isRace || count === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50 * count));
    }
  }
}
