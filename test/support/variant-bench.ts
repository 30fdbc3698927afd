import {
  type PackageVariantOptions,
  packageVariantController,
} from '../../controllers/package-variant/package-variant-controller.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { ANNA, type Fixture } from './fixture.ts';

/** Two repositories, a published blueprint, and a controller that tests run by hand. */
export interface VariantBench {
  readonly world: Fixture;
  reconcile(name?: string): Promise<ReconcileResult | undefined>;
  /** A controller on another store or client. */
  on(options: Partial<PackageVariantOptions>): (name?: string) => Promise<ReconcileResult | undefined>;
  variant(spec?: object, name?: string): Promise<void>;
  /** Publishes the next revision of the blueprint with these files changed. */
  publishBlueprint(files: Readonly<Record<string, string>>): Promise<PackageRevision>;
  /** The revisions of the downstream package, by workspace and lifecycle. */
  downstream(path?: string): string[];
  text(revision: string, file: string): Promise<string>;
  /** `Type=Status/Reason: message` of the conditions of a variant. */
  conditions(name?: string): Promise<string[]>;
}

export const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: web
          image: web:v1
`;

/** Messages about merges without the commits that they name. */
export function withoutCommits(text: string): string {
  return text.replaceAll(/ at [0-9a-f]{12}: /g, ': ');
}

export async function variantBench(world: Fixture): Promise<VariantBench> {
  await world.register('blueprints');
  await world.register('edge', { deployment: true });
  const first = await world.draft('blueprints/web/w1', { 'web.yaml': DEPLOYMENT });
  await world.publish(first.name);
  const on: VariantBench['on'] = (options) => {
    const { client, store, clock, registry } = world;
    const recorder = world.recorder('controller:package-variant');
    const controller = packageVariantController({ client, store, clock, kinds: registry, recorder, ...options });
    return async (name = 'web-edge') =>
      (await controller.reconcile(
        { namespace: 'default', name },
        { signal: new AbortController().signal, failures: 0 },
      )) ?? undefined;
  };
  return {
    world,
    reconcile: on({}),
    on,
    variant: async (spec = {}, name = 'web-edge') => {
      await world.client.create(packageVariantKind, {
        metadata: { name },
        spec: {
          upstream: { repo: 'blueprints', package: 'web' },
          downstream: { repo: 'edge', package: 'web' },
          ...spec,
        },
      });
    },
    publishBlueprint: async (files) => {
      const rows = world.store.list({ repository: 'blueprints', package: 'web' });
      const latest = rows.reduce((best, row) => (row.revision > best.revision ? row : best));
      const source = { type: 'copy', source: latest.name } as const;
      const workspace = `w${latest.revision + 1}`;
      const { name } = await world.store.create('blueprints', { package: 'web', workspace, source }, ANNA);
      const changed = new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
      await world.store.change(name, { files: changed }, ANNA);
      return world.publish(name);
    },
    downstream: (path = 'web') =>
      world.store
        .list({ repository: 'edge', package: path })
        .filter(({ revision }) => revision >= 0)
        .map(({ key, lifecycle, revision }) => `${key.workspace} ${lifecycle}${revision > 0 ? ` v${revision}` : ''}`),
    text: async (revision, file) => {
      const { files } = await world.store.content(revision);
      return files.get(file)?.toString() ?? '';
    },
    conditions: async (name = 'web-edge') => {
      const { status } = await world.client.get(packageVariantKind, { namespace: 'default', name });
      return (status?.conditions ?? []).map(
        ({ type, status: value, reason, message }) => `${type}=${value}/${reason}: ${message}`,
      );
    },
  };
}
