import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject } from '../../../support/api/kube-api.ts';
import type { Engine, FollowOptions, PackageReport } from './engine.ts';
import type { DeliveredPlace, GitOpsWorld } from './gitops-world.ts';
import type { Files } from './package-author.ts';

/** Milliseconds that an engine has on a loaded machine, and between two looks at its report. */
const TIMEOUT_MS = 90_000;
const POLL_MS = 200;
/** Milliseconds after which an engine that has not read a commit is triggered again. */
const TRIGGER_MS = 5000;

interface TargetOptions {
  readonly directory?: string;
  readonly metadata?: object;
  /** Further fields of the spec of the target. */
  readonly spec?: object;
  readonly follow?: FollowOptions;
}

/** Steps of the tests that deliver with Sluice and sync with an engine. */
export class Scenario {
  readonly world: GitOpsWorld;
  readonly engine: Engine;

  constructor(world: GitOpsWorld, engine: Engine) {
    this.world = world;
    this.engine = engine;
  }

  /** Creates a target of these packages, and lets the engine follow it. */
  async target(
    name: string,
    packages: readonly string[],
    { follow, ...settings }: TargetOptions = {},
  ): Promise<DeliveredPlace> {
    const selector = { repositories: ['packages'], packages };
    const place = await this.world.target({ name, ...settings, spec: { selector, ...settings.spec } });
    await this.engine.follow(place, follow);
    return place;
  }

  /** Publishes a revision of a package, and waits until the target has delivered these packages. Returns the name of the revision. */
  async publish(place: DeliveredPlace, path: string, workspace: string, files: Files, all: readonly string[]) {
    const name = await this.world.author.publish(path, workspace, files);
    await this.world.delivered(place.name, all);
    return name;
  }

  /** Waits until the engine has synced the head of a place, and reports the package as healthy. */
  async synced(place: DeliveredPlace, path: string): Promise<PackageReport> {
    const head = this.world.headOf(place);
    return this.reported(place, path, 'synced', ({ synced, healthy }) => synced === head && healthy);
  }

  /** Waits until the engine reports a failure of the head of a place. */
  async refused(place: DeliveredPlace, path: string, message: RegExp): Promise<PackageReport> {
    const matches = (report: PackageReport) => !report.healthy && message.test(report.message);
    return this.reported(place, path, `refused: ${message}`, matches);
  }

  /** Triggers the engine, and waits for a report. */
  async reported(
    place: DeliveredPlace,
    path: string,
    what: string,
    holds: (report: PackageReport) => boolean,
    pollMs = POLL_MS,
  ): Promise<PackageReport> {
    let triggered = 0;
    let last: PackageReport | undefined;
    await this.eventually(
      async () => {
        if (Date.now() - triggered > TRIGGER_MS) {
          triggered = Date.now();
          await this.engine.trigger(place);
        }
        last = await this.engine.report(place, path);
        return holds(last);
      },
      () => `${this.engine.name}: ${path} of ${place.name} ${what}: ${JSON.stringify(last)}`,
      pollMs,
    );
    return last as PackageReport;
  }

  /** An object of the cluster; undefined if there is none. */
  async find(path: string): Promise<KubeObject | undefined> {
    const { status, body, text } = await this.world.cluster.get(path);
    if (status !== 200 && status !== 404) throw new Error(`${path}: ${status} ${text}`);
    return status === 404 ? undefined : body;
  }

  /** The data of a ConfigMap; undefined if there is none. */
  async data(namespace: string, name: string): Promise<unknown> {
    return (await this.find(`/api/v1/namespaces/${namespace}/configmaps/${name}`))?.data;
  }

  /** Triggers the engine until an object has gone. */
  async gone(place: DeliveredPlace, path: string): Promise<void> {
    let triggered = 0;
    await this.eventually(
      async () => {
        if (Date.now() - triggered > TRIGGER_MS) {
          triggered = Date.now();
          await this.engine.trigger(place);
        }
        return (await this.find(path)) === undefined;
      },
      () => `${path} is deleted by ${this.engine.name}`,
    );
  }

  async eventually(holds: () => Promise<boolean>, describe: () => string, pollMs = POLL_MS): Promise<void> {
    const end = Date.now() + TIMEOUT_MS;
    while (!(await holds())) {
      if (Date.now() > end) throw new Error(`not within ${TIMEOUT_MS} ms: ${describe()}`);
      await delay(pollMs);
    }
  }
}

export function configMap(name: string, namespace: string, value: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\ndata:\n  value: "${value}"\n`;
}

export function namespace(name: string): string {
  return `apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${name}\n`;
}

/** A Deployment of one pod, which becomes ready unless its labels prevent it. */
export function deployment(name: string, labels: Readonly<Record<string, string>> = {}, more: object = {}): string {
  const matchLabels = { app: name };
  return JSON.stringify({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' } },
    spec: {
      replicas: 1,
      selector: { matchLabels },
      template: {
        metadata: { labels: { ...matchLabels, ...labels } },
        spec: { containers: [{ name: 'main', image: 'registry.example.com/main:1' }] },
      },
      ...more,
    },
  });
}

/** The definition of a kind whose objects can contain anything. */
export function definition(group: string, kind: string, scope: 'Namespaced' | 'Cluster' = 'Namespaced'): string {
  const singular = kind.toLowerCase();
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const version = (name: string, storage: boolean) => ({ name, served: true, storage, schema });
  return JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.${group}` },
    spec: {
      ...{ group, scope, names: { kind, plural: `${singular}s`, singular } },
      versions: [version('v1', true), version('v1alpha1', false)],
    },
  });
}
