import { LineCounter, parseAllDocuments } from 'yaml';
import { gatesOf } from '../../../../kptfile-schema/index.ts';
import type { Source } from '../../../../src/controller/source.ts';
import { messageOf } from '../../../../src/foundation/sluice-error.ts';
import { canonicalJson } from '../../../../src/foundation/text/canonical-json.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import type { IssuedCondition } from '../../../../src/package/model/gates/verdict.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { setKrmStatus } from '../../../../src/package/model/krm/krm-edit.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import { isPublished, type PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { Resolver, ResolverContext, ResolverSubject } from '../../../../src/package/plan/ports/resolver.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import type { ObjectKey } from '../../../../src/resource/object/object.ts';
import { positionOf } from '../../../../src/resource/object/yaml-positions.ts';
import { PackageRings, type PackageRingsOptions } from '../../../package-rings.ts';
import { ClusterPackages, clusterOf, WAIT_ANNOTATION, waitsForCluster } from './cluster-packages.ts';
import { ConsumerIndex, clusterInterest, packageInterest } from './consumer-index.ts';
import {
  CLUSTER_TYPE,
  DEPENDENCY_TYPES,
  type Dependency,
  isDependency,
  isDependencyType,
  PROVIDER_SOURCE,
  readDependency,
} from './dependency-object.ts';
import { dependencySources } from './dependency-sources.ts';
import { injectedFile, writeInjected } from './inject-objects.ts';
import { type DependencyOutcome, resolveDependency } from './resolve-dependency.ts';
import { deploymentProblem, type ProviderWorld, packageId } from './select-providers.ts';
import { SimilarNames } from './similar-names.ts';

export interface DependencyOptions extends Omit<ProviderWorld, 'store'> {
  readonly store: Pick<RevisionStore, 'list' | 'find' | 'content' | 'evaluate' | 'subscribe'>;
  readonly clock: Clock;
  readonly sharing?: PackageRingsOptions['sharing'];
  /** Names of registered repositories whose packages are not known yet. */
  readonly unread: (signal: AbortSignal) => Promise<readonly string[]>;
  /** See `deliveredSource`. */
  readonly quietMs?: number;
}

export interface DependencyResolver {
  readonly resolver: Resolver;
  /** Wake the drafts and proposals that depend on a package when it changes, or what is known of its deployment. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Settles the Dependency objects of drafts, and lets workloads wait for their cluster; see README.md. */
export function dependencyResolver(options: DependencyOptions): DependencyResolver {
  const { store } = options;
  const consumers = new ConsumerIndex();
  const clusters = new ClusterPackages(store);
  const rings = new PackageRings(options);
  const names = new SimilarNames(options);
  /** Outcomes by run: later rounds must return the same even if a provider changes meanwhile. */
  const outcomesOfRun = new WeakMap<ResolverContext, Map<string, Promise<DependencyOutcome>>>();

  const resolver: Resolver = {
    name: 'dependency',
    claims: [DEPENDENCY_TYPES, CLUSTER_TYPE],
    checksProposals: true,
    applies({ objects, conditions, revision }) {
      if (objects.some(isDependency) || [...conditions.keys()].some(isDependencyType)) return true;
      const cluster = clusterOf(objects, revision);
      if (cluster === undefined) return false;
      // Its package can follow.
      consumers.record(keyOf(revision), [clusterInterest(revision.namespace, cluster)]);
      return clusters.candidates(cluster, revision).length > 0;
    },
    async resolve(subject, context) {
      const { revision, objects, conditions } = subject;
      const found = objects.filter(isDependency);
      const cluster = clusterOf(objects, revision);
      // Before anything is read, since any later change must wake this draft.
      consumers.record(keyOf(revision), interestsOf(revision, found, cluster, clusters));
      const unread = await options.unread(context.signal);
      const edits = new Map<string, string | null>();
      const issued: IssuedCondition[] = [];
      for (const object of found) {
        const dependency = readDependency(object);
        issued.push(
          'problem' in dependency
            ? invalid(
                formatConditionType(object),
                `${placeOf(object, dependency.path, subject)}: ${dependency.problem}`,
              )
            : settle(subject, dependency, await outcomeOf(dependency, revision, context), unread, edits),
        );
      }
      const ofCluster = cluster === undefined ? undefined : await clusterCondition(cluster, revision, unread);
      const isGate = gatesOf(subject.kptfile).includes(CLUSTER_TYPE);
      if (ofCluster !== undefined) issued.push(ofCluster);
      else if (isGate) issued.push(withoutCluster(revision));
      const types = new Set(issued.map(({ type }) => type));
      return {
        edits,
        conditions: merged(issued),
        withdraw: [...conditions.keys()].filter((type) => isDependencyType(type) && !types.has(type)),
        gates: [...types],
      };
    },
  };

  function outcomeOf(dependency: Dependency, revision: PackageRevision, context: ResolverContext) {
    const known = outcomesOfRun.get(context) ?? new Map<string, Promise<DependencyOutcome>>();
    outcomesOfRun.set(context, known);
    const { status: _status, ...wanted } = dependency.object.value;
    const key = canonicalJson(wanted);
    const outcome = known.get(key) ?? resolveDependency(dependency, revision, { ...options, rings, names });
    known.set(key, outcome);
    return outcome;
  }

  async function clusterCondition(
    cluster: string,
    revision: PackageRevision,
    unread: readonly string[],
  ): Promise<IssuedCondition | undefined> {
    const creators = await clusters.creators(cluster, revision);
    const ids = creators.map(packageId);
    const base = { type: CLUSTER_TYPE, inputs: ['content'] };
    const external = creators.map((one) => ({
      ...{ source: PROVIDER_SOURCE, id: packageId(one) },
      ...{ value: `v${one.revision} ${one.commit}`, time: new Date(one.tip.time).toISOString() },
    }));
    if (creators.length === 0) return unread.length === 0 ? undefined : { ...base, ...awaiting(unread) };
    const cycle = await rings.ofConsumer(revision, ids);
    if (cycle !== undefined)
      return {
        ...{ ...base, external, status: 'False', reason: 'DependencyCycle' },
        message: `${cycle.text}; none of them can be first`,
      };
    const problems = creators.map((one): Pick<IssuedCondition, 'reason' | 'message'> | undefined => {
      const what = `package ${packageId(one)} creates cluster ${cluster}, and`;
      const reason = 'ClusterNotDeployed';
      if (!isPublished(one)) return { reason, message: `${what} it is not published` };
      if (!isReported(one, options)) return notReported(`${what} no GitOps engine reports whether v${one.revision}`);
      const problem = deploymentProblem(one, options);
      return problem === undefined ? undefined : { reason, message: `${what} v${one.revision} ${problem}` };
    });
    const problem = problems.find((one) => one !== undefined);
    if (problem !== undefined) return { ...base, external, status: 'False', ...problem };
    return { ...base, external, status: 'True', reason: 'ClusterDeployed', message: `${ids.join(', ')} is deployed` };
  }

  return { resolver, sources: [rings.source, ...dependencySources(options, consumers)] };
}

/** True if a target with an engine selects a package: without one it can never be known whether it is deployed. */
function isReported({ key, namespace }: PackageRevision, { targets }: Pick<ProviderWorld, 'targets'>): boolean {
  return targets(namespace).some(
    ({ spec: { engine, selector } }) =>
      engine !== undefined &&
      (selector.repositories?.includes(key.repository) ?? true) &&
      (selector.packages?.includes(key.package) ?? true),
  );
}

/** Writes the lock and the injected objects into `edits`, and returns the condition. Of a proposal, nothing is written. */
function settle(
  subject: ResolverSubject,
  dependency: Dependency,
  outcome: DependencyOutcome,
  unread: readonly string[],
  edits: Map<string, string | null>,
): IssuedCondition {
  const { condition, providers, injected } = outcome;
  const { object, type } = dependency;
  const isOpen = condition.status === 'True';
  const isChanged = isOpen && !hasLock(subject, dependency, outcome);
  // Which packages there are is not known yet.
  if (unread.length > 0 && (!isOpen || isChanged)) return { type, inputs: ['content'], ...awaiting(unread) };
  if (!isOpen) return condition;
  if (subject.revision.lifecycle === 'Proposed') {
    if (!isChanged) return condition;
    const message = `the providers are ${condition.message} now; reject the proposal, so that the draft gets them`;
    return { ...condition, status: 'False', reason: 'ProviderChanged', message };
  }
  const file = writeInjected(dependency, injected, subject.files);
  if ('problem' in file) return invalid(type, file.problem);
  try {
    const text = edits.get(object.file) ?? subject.files.get(object.file)?.toString('utf8') ?? '';
    const references = injected.map(({ name, namespace }) => ({
      ...{ apiVersion: 'ref.nephio.org/v1alpha1', kind: 'Config', name },
      ...(namespace === undefined ? {} : { namespace }),
    }));
    const status = { ...(references.length === 0 ? {} : { injected: references }), providers };
    const edited = setKrmStatus(object.file, text, object.index, status);
    if (edited !== text) edits.set(object.file, edited);
  } catch (error) {
    return invalid(type, messageOf(error));
  }
  if (file.text !== undefined) edits.set(injectedFile(dependency), file.text);
  return condition;
}

/** An outcome is computed once for a run, whose first round writes the lock. */
function hasLock({ objects }: ResolverSubject, { object }: Dependency, { providers }: DependencyOutcome): boolean {
  const present = objects.find(({ file, index }) => file === object.file && index === object.index);
  const { status } = (present?.value ?? {}) as { readonly status?: { readonly providers?: unknown } };
  return canonicalJson(status?.providers ?? []) === canonicalJson(providers);
}

/** A condition type does not carry the namespace, so two objects can share one, which is True only if all of them are resolved. */
function merged(issued: readonly IssuedCondition[]): IssuedCondition[] {
  const byType = new Map<string, IssuedCondition>();
  for (const condition of issued)
    if (byType.get(condition.type)?.status !== 'False') byType.set(condition.type, condition);
  return [...byType.values()];
}

function interestsOf(
  revision: PackageRevision,
  objects: ResolverSubject['objects'],
  cluster: string | undefined,
  clusters: ClusterPackages,
): string[] {
  const { namespace } = revision;
  const names = objects
    .map(readDependency)
    .flatMap((dependency) => ('problem' in dependency ? [] : packageInterest(namespace, dependency.packageName)));
  const ofCluster =
    cluster === undefined
      ? []
      : [
          clusterInterest(namespace, cluster),
          ...clusters
            .candidates(cluster, revision)
            .map((id) => packageInterest(namespace, id.slice(id.indexOf('/') + 1))),
        ];
  return [...new Set([...names, ...ofCluster])].sort();
}

function keyOf({ namespace, name }: PackageRevision): ObjectKey {
  return { namespace, name };
}

function invalid(type: string, message: string): IssuedCondition {
  return { type, inputs: ['content'], status: 'False', reason: 'InvalidDependency', message };
}

/** File and line of a field. */
function placeOf({ file, index }: KrmObject, path: readonly (string | number)[], { files }: ResolverSubject): string {
  const lines = new LineCounter();
  const document = parseAllDocuments(files.get(file)?.toString('utf8') ?? '', { lineCounter: lines })[index];
  return document === undefined ? file : `${file}:${positionOf(document, lines, path).line}`;
}

function awaiting(unread: readonly string[]): Pick<IssuedCondition, 'status' | 'reason' | 'message'> {
  const message = `the packages of ${unread.slice(0, 5).join(', ')} are not read yet; see "sluice repo get"`;
  return { status: 'Unknown', reason: 'AwaitingRepositories', message };
}

function notReported(what: string): Pick<IssuedCondition, 'reason' | 'message'> {
  const message = `${what} is deployed; let a DeliveryTarget with spec.engine select that package, or set the annotation ${WAIT_ANNOTATION}: "false" in the Kptfile of this one`;
  return { reason: 'ClusterNotReported', message };
}

function withoutCluster(revision: PackageRevision): IssuedCondition {
  const base = { type: CLUSTER_TYPE, inputs: ['content'], status: 'True' } as const;
  if (!waitsForCluster(revision))
    return { ...base, reason: 'NotAwaited', message: `annotation ${WAIT_ANNOTATION} of the Kptfile is "false"` };
  return { ...base, reason: 'NoClusterPackage', message: 'no package creates the cluster of this workload' };
}
