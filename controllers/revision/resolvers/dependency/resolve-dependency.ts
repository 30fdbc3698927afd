import { canonicalJson } from '../../../../src/foundation/text/canonical-json.ts';
import type { IssuedCondition } from '../../../../src/package/model/gates/verdict.ts';
import type { ExternalFact } from '../../../../src/package/model/record/record.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { PackageRings } from '../../../package-rings.ts';
import { type Dependency, type LockedProvider, lockOf, PROVIDER_SOURCE } from './dependency-object.ts';
import { type InjectedObject, injectedObjects } from './inject-objects.ts';
import { type Provider, type ProviderWorld, packageId, type Selection, selectProviders } from './select-providers.ts';
import type { SimilarNames } from './similar-names.ts';

const NO_TIME = '1970-01-01T00:00:00Z';
const MAX_NAMED = 5;

interface DependencyWorld extends ProviderWorld {
  readonly rings: Pick<PackageRings, 'ofConsumer'>;
  readonly names: Pick<SimilarNames, 'of'>;
}

/** What the providers of a Dependency are now. */
export interface DependencyOutcome {
  readonly providers: readonly LockedProvider[];
  readonly injected: readonly InjectedObject[];
  /** True if the providers are others than those in the status of the Dependency. */
  readonly isChanged: boolean;
  readonly condition: IssuedCondition;
}

/** Evaluates a Dependency of a revision. It depends on the packages of the store and on what is delivered, and on no time. */
export async function resolveDependency(
  dependency: Dependency,
  consumer: PackageRevision,
  world: DependencyWorld,
): Promise<DependencyOutcome> {
  const selection = await selectProviders(dependency, consumer, world);
  const providers = selection.ready.map(({ revision: { key, revision, commit } }) => ({
    ...{ repository: key.repository, package: key.package },
    ...{ revision, commit },
  }));
  const condition = await conditionOf(dependency, consumer, selection, world);
  return {
    providers,
    injected: injectedObjects(dependency, selection.ready),
    isChanged: canonicalJson(providers) !== canonicalJson(lockOf(dependency.object)),
    condition: { ...condition, type: dependency.type, inputs: ['content'], external: factsOf(dependency, selection) },
  };
}

async function conditionOf(
  { packageName, spec }: Dependency,
  consumer: PackageRevision,
  { ready, waiting }: Selection,
  { rings, names }: DependencyWorld,
): Promise<Pick<IssuedCondition, 'status' | 'reason' | 'message'>> {
  const closed = (reason: string, message: string) => ({ status: 'False' as const, reason, message });
  const ids = [...ready.map(({ revision }) => packageId(revision)), ...waiting.map(({ id }) => id)];
  const cycle = await rings.ofConsumer(consumer, ids);
  if (cycle !== undefined)
    return closed('DependencyCycle', `${cycle.text}; none of them can be first: remove one of the Dependency objects`);
  if (ids.length === 0) {
    const near = names.of(packageName, consumer);
    const hint = near.length === 0 ? '' : `, or did you mean ${near.join(' or ')}?`;
    return closed('NoProvider', `no package ${packageName} is selected; publish one${hint}`);
  }
  const { minCount } = spec;
  const reasons = listed(waiting.map(({ message }) => message));
  if (minCount === undefined && waiting.length > 0) return closed('ProviderNotReady', reasons);
  if (ready.length < (minCount ?? 1)) {
    const also = waiting.length === 0 ? '' : `: ${reasons}`;
    return closed(
      'TooFewProviders',
      `${ready.length} of at least ${minCount} packages ${packageName} are ready${also}`,
    );
  }
  return { status: 'True', reason: 'Resolved', message: listed(ready.map(nameOf)) };
}

/** What the verdict rests on: the providers, and the packages that it waits for. */
function factsOf({ packageName }: Dependency, { ready, waiting }: Selection): ExternalFact[] {
  const found = [
    ...ready.map(({ revision }) => ({
      ...{ source: PROVIDER_SOURCE, id: packageId(revision) },
      ...{ value: `v${revision.revision} ${revision.commit}`, time: new Date(revision.tip.time).toISOString() },
    })),
    ...waiting.map(({ id }) => ({ source: PROVIDER_SOURCE, id, value: 'not ready', time: NO_TIME })),
  ];
  return found.length > 0 ? found : [{ source: 'Dependency', id: packageName, value: 'no package', time: NO_TIME }];
}

function nameOf({ revision }: Provider): string {
  return `${packageId(revision)} v${revision.revision}`;
}

function listed(texts: readonly string[]): string {
  const more = texts.length - MAX_NAMED;
  return [...texts.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more`] : [])].join('; ');
}
