import { Informer } from '../../../controller/informer.ts';
import { isSluiceError, messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { Client } from '../../../resource/client/client.ts';
import type { DeliveryTarget } from '../../../resource/kinds/sluice/delivery/delivery-target.ts';
import { engineNamespace } from '../../../resource/kinds/sluice/delivery/engine-settings.ts';
import { type KubernetesObject, keyOf, keyText, type Stored } from '../../../resource/object/object.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import type { DeploymentStatus, EngineReports, ReportRequest } from '../deployment-status.ts';
import type { EngineReport } from '../engine-report.ts';
import { interpretApplication, sourcesOf } from '../interpret-application.ts';
import { interpretKustomization } from '../interpret-kustomization.ts';
import { applicationKind, gitRepositoryKind, kustomizationKind } from './engine-kinds.ts';
import { artifactFilterOf, comparesSources, concernsDirectory, isGitRepositoryOf, isSourceOf } from './source-match.ts';
import { type SharedBytes, StoreLimit } from './store-limit.ts';

/** Milliseconds until the first list must be there. */
const FIRST_LIST_MS = 15_000;
/** Milliseconds after which reports do not count any more while the connection fails. */
const MAX_OUTAGE_MS = 60_000;

export interface EngineObjectsOptions {
  /** Of the cluster of the engine. */
  readonly client: Client;
  /** Names the cluster in messages. */
  readonly cluster: string;
  readonly clock: Clock;
  readonly onChange: () => void;
  /** What the targets of a namespace keep of clusters that their users choose. */
  readonly shared?: SharedBytes;
  /** Called when the reports are closed. */
  readonly onClose?: () => Promise<void>;
}

type EngineTarget = Pick<DeliveryTarget, 'spec'>;

interface SeenHealth {
  /** The health and the time of its transition, as text. */
  readonly health: string;
  readonly at: number;
}

/** Follows the Applications or Kustomizations that deploy a target, by a watch. Only changes of a report count as changes. */
export class EngineObjects implements DeploymentStatus {
  readonly #options: EngineObjectsOptions;
  readonly #engine: NonNullable<DeliveryTarget['spec']['engine']>;
  readonly #git: DeliveryTarget['spec']['git'];
  readonly #objects: Informer<KubernetesObject>;
  /** The sources of Kustomizations; only where sources are compared. */
  readonly #repositories: Informer<KubernetesObject> | undefined;
  readonly #reports = new Map<string, EngineReport>();
  readonly #limits: StoreLimit[] = [];
  readonly #health = new Map<string, SeenHealth>();
  /** Rejects with the first failure of a connection. */
  readonly #failing = Promise.withResolvers<never>();
  #failure: { readonly error: unknown; readonly since: number } | undefined;
  /** The kinds that could not be read, by the errors. */
  readonly #kindOf = new WeakMap<Error, string>();
  /** Set once there is too much to keep: nothing is read any more. */
  #exceeded: SluiceError | undefined;

  constructor({ spec }: EngineTarget, options: EngineObjectsOptions) {
    if (spec.engine === undefined || spec.engine.type === 'CommitStatus')
      throw new SluiceError('Internal', 'the target has no engine with objects');
    this.#options = options;
    // A failure while no caller waits is reported by the next call.
    this.#failing.promise.catch(() => undefined);
    this.#engine = spec.engine;
    this.#git = spec.git;
    const { type, name, selector } = spec.engine;
    const namespace = engineNamespace(spec.engine);
    const selection = {
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
      ...(selector === undefined ? {} : { labelSelector: selector }),
    };
    this.#objects = this.#informer(type === 'Flux' ? kustomizationKind : applicationKind, selection);
    this.#objects.addHandler((event) => {
      if (event.type === 'delete') this.#remove(keyText(keyOf(event.object)));
      else this.#update(event.object);
    });
    if (type === 'Flux' && comparesSources(spec.engine)) {
      this.#repositories = this.#informer(gitRepositoryKind, namespace === undefined ? {} : { namespace });
      this.#repositories.addHandler(() => {
        for (const object of this.#objects.list()) this.#update(object);
      });
      this.#repositories.start();
    }
    this.#objects.start();
  }

  async reports({ signal }: ReportRequest): Promise<EngineReports> {
    const { clock } = this.#options;
    if (this.#exceeded !== undefined) throw this.#unreachable(this.#exceeded);
    for (const informer of [this.#objects, this.#repositories])
      if (informer !== undefined) await this.#synced(informer, signal);
    if (this.#failure !== undefined && clock.monotonic() - this.#failure.since >= MAX_OUTAGE_MS)
      throw this.#unreachable(this.#failure.error);
    // The same report can have another meaning after a while.
    for (const [key, { retryAfterMs }] of this.#reports) {
      const [namespace, name = ''] = key.split('/', 2);
      const object = retryAfterMs === undefined ? undefined : this.#objects.get({ namespace, name });
      const again = object && this.#interpret(object);
      if (again !== undefined) this.#reports.set(key, again);
    }
    const reports = [...this.#reports.values()];
    const waits = reports.flatMap((report) => report.retryAfterMs ?? []);
    const absent = reports.length === 0 ? this.#absent() : undefined;
    return {
      ...{ reports, ...(waits.length === 0 ? {} : { retryAfterMs: Math.min(...waits) }) },
      ...(absent === undefined ? {} : { absent }),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#objects.stop(), this.#repositories?.stop()]);
    for (const limit of this.#limits) limit.release();
    await this.#options.onClose?.();
  }

  /** What the settings of the target name, and is not there. */
  #absent(): string | undefined {
    const { name, namespace, selector } = this.#engine;
    const { kind } = this.#objects.kind;
    const place = engineNamespace(this.#engine) ?? '';
    const found = this.#objects.list();
    if (found.length === 0 && name !== undefined)
      return `${kind} ${place}/${name} does not exist; check spec.engine.name and spec.engine.namespace`;
    if (found.length === 0 && selector !== undefined)
      return `no ${kind} in namespace ${place} matches spec.engine.selector; check it and spec.engine.namespace`;
    if (found.length === 0 && namespace !== undefined)
      return `namespace ${place} has no ${kind}; check spec.engine.namespace`;
    if (found.length === 0 || name === undefined) return undefined;
    return `the source of ${kind} ${place}/${name} is not the repository and branch of the target, or its path is outside the directory; check spec.engine.name`;
  }

  get #lastError(): unknown {
    return this.#failure?.error;
  }

  #informer(kind: typeof kustomizationKind, selection: object): Informer<KubernetesObject> {
    const { client, clock, shared } = this.#options;
    const informer = new Informer<KubernetesObject>({
      ...{ client, kind, selection, clock },
      onError: (error) => {
        // The next list would be as long.
        if (isSluiceError(error, 'LimitExceeded')) this.#end(error);
        const isFirst = this.#failure === undefined;
        this.#failure = { error, since: this.#failure?.since ?? clock.monotonic() };
        if (error instanceof Error) this.#kindOf.set(error, kind.plural);
        this.#failing.reject(error);
        if (isFirst) this.#options.onChange();
      },
      onChange: () => {
        if (this.#failure === undefined) return;
        this.#failure = undefined;
        this.#options.onChange();
      },
    });
    const limit = new StoreLimit(kind.plural, shared);
    this.#limits.push(limit);
    informer.addHandler(({ type, object }) => {
      const exceeded = limit.set(keyText(keyOf(object)), type === 'delete' ? undefined : object);
      if (exceeded !== undefined) this.#end(exceeded);
    });
    return informer;
  }

  /** Ends the watches, until the target or its kubeconfig changes. */
  #end(error: SluiceError): void {
    if (this.#exceeded !== undefined) return;
    this.#exceeded = error;
    this.#failing.reject(error);
    this.#reports.clear();
    // `close` reports what an end fails with.
    for (const informer of [this.#objects, this.#repositories]) informer?.stop().catch(() => undefined);
    this.#options.onChange();
  }

  /** Resolves once the first list is there; fails with the error of the list, or after a time. */
  async #synced(informer: Informer<KubernetesObject>, signal: AbortSignal): Promise<void> {
    if (informer.synced) return;
    if (this.#failure !== undefined) throw this.#unreachable(this.#lastError);
    const { promise, reject } = Promise.withResolvers<never>();
    const cancel = this.#options.clock.schedule(FIRST_LIST_MS, () =>
      reject(new SluiceError('Timeout', `no list within ${FIRST_LIST_MS / 1000} s`)),
    );
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([informer.whenSynced(), promise, this.#failing.promise]);
    } catch (error) {
      throw this.#unreachable(this.#exceeded ?? this.#lastError ?? error);
    } finally {
      cancel();
      signal.removeEventListener('abort', abort);
    }
  }

  #unreachable(error: unknown): SluiceError {
    const { cluster } = this.#options;
    const code = error instanceof SluiceError ? error.code : 'Unavailable';
    const plural = (error instanceof Error ? this.#kindOf.get(error) : undefined) ?? this.#objects.kind.plural;
    // Flux alone reads a second kind, and only to compare sources. The next step comes first: statuses and columns cut long messages.
    const isSource = isSluiceError(error, 'Refused') && plural === this.#repositories?.kind.plural;
    const byName = comparesSources({ ...this.#engine, name: 'x' }) ? '' : ', or set spec.engine.name';
    const advice = isSource ? `grant list and watch on ${plural}${byName}: ` : '';
    const message = `${advice}cannot read the ${plural} of ${cluster}: ${messageOf(error)}`;
    return new SluiceError(code, message, { cause: error });
  }

  #update(object: Stored): void {
    if (this.#exceeded !== undefined) return;
    const key = keyText(keyOf(object));
    const report = this.#concerns(object) ? this.#interpret(object) : undefined;
    if (report === undefined) {
      this.#remove(key);
      return;
    }
    if (sameValue(this.#reports.get(key), report)) return;
    this.#reports.set(key, report);
    this.#options.onChange();
  }

  #remove(key: string): void {
    this.#health.delete(key);
    if (this.#reports.delete(key)) this.#options.onChange();
  }

  /** True for an object whose source is the target, or that the target names where sources are not compared. */
  #concerns(object: Stored): boolean {
    if (!comparesSources(this.#engine)) return true;
    if (this.#engine.type === 'ArgoCD')
      return sourcesOf(object).some(
        (source) => isSourceOf(this.#git, source) && concernsDirectory(this.#git, source.path),
      );
    const { path } = (object.spec ?? {}) as { path?: unknown };
    const repository = this.#repositoryOf(object);
    return (
      repository !== undefined &&
      isGitRepositoryOf(this.#git, repository) &&
      concernsDirectory(this.#git, typeof path === 'string' ? path : undefined)
    );
  }

  /** The GitRepository of a Kustomization, where sources are compared. */
  #repositoryOf({ metadata, spec }: Stored): KubernetesObject | undefined {
    const { sourceRef } = (spec ?? {}) as { sourceRef?: Record<string, unknown> };
    const { namespace = metadata.namespace, name, kind } = sourceRef ?? {};
    if (kind !== 'GitRepository' || typeof name !== 'string' || typeof namespace !== 'string') return undefined;
    return this.#repositories?.get({ namespace, name });
  }

  #interpret(object: Stored): EngineReport | undefined {
    if (this.#engine.type === 'Flux') {
      const report = interpretKustomization(object);
      return report && { ...report, artifact: artifactFilterOf(this.#repositoryOf(object)) };
    }
    const now = this.#options.clock.now();
    const key = keyText(keyOf(object));
    const { status, lastTransitionTime } =
      (object.status as { health?: Record<string, unknown> } | undefined)?.health ?? {};
    const health = `${String(status)} ${String(lastTransitionTime)}`;
    const before = this.#health.get(key);
    const at = before?.health === health ? Math.min(before.at, now) : now;
    this.#health.set(key, { health, at });
    const sources = sourcesOf(object);
    // The engine may read a single source under another address.
    const isSource =
      sources.length > 1 ? (source: Parameters<typeof isSourceOf>[1]) => isSourceOf(this.#git, source) : undefined;
    return interpretApplication(object, { now, healthSeenAt: at, ...(isSource === undefined ? {} : { isSource }) });
  }
}
