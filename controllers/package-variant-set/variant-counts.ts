import type { Informer } from '../../src/controller/informer.ts';
import type { Source, SourceContext } from '../../src/controller/source.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import {
  type PackageVariant,
  packageVariantKind,
  WAITING,
  waitsIn,
} from '../../src/resource/kinds/porch/package-variant.ts';
import type { PackageVariantSet } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { conditionMessage } from '../package-variant/describe-variant.ts';

export type Counts = NonNullable<NonNullable<PackageVariantSet['status']>['variants']>;

/** Reason of `Ready` while variants of the set report problems. */
export const VARIANTS_FAILING = 'VariantsFailing';

const OWNER = 'package-variant-set-owner';
/** Milliseconds from the first change of a variant until the counts of its set are written: a thousand variants change together. */
const PAUSE_MS = 1000;

/**
 * Follows the conditions of variants, and wakes a set some time after they changed. A set that is woken by nothing else only writes its
 * counts, and does not evaluate its targets.
 */
export class VariantCounts {
  readonly #clock: Clock;
  readonly #timers = new Map<string, () => void>();
  /** Sets that were woken for their counts, and those that were woken for more. */
  readonly #counted = new Set<string>();
  readonly #changed = new Set<string>();
  #variants: Pick<Informer<PackageVariant>, 'byIndex'> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly source: Source<ObjectKey> = {
    start: (context) => {
      const variants = context.informer(packageVariantKind);
      variants.addIndex(OWNER, ({ metadata }) => (metadata.ownerReferences ?? []).map(({ uid }) => uid));
      this.#variants = variants;
      const end = variants.addHandler((event) => {
        const before = event.type === 'update' ? stateOf(event.old) : undefined;
        if (event.type === 'update' && before === stateOf(event.object)) return;
        const { namespace, ownerReferences = [] } = event.object.metadata;
        for (const { kind, name } of ownerReferences)
          if (kind === packageVariantSetKind.kind) this.#schedule({ namespace, name }, context);
      });
      return () => {
        end();
        for (const cancel of this.#timers.values()) cancel();
        this.#timers.clear();
        this.#counted.clear();
        this.#changed.clear();
        this.#variants = undefined;
      };
    },
  };

  /** A source whose events require more than new counts. */
  waking(source: Source<ObjectKey>): Source<ObjectKey> {
    return {
      start: (context) =>
        source.start({
          ...context,
          enqueue: (key) => {
            this.#changed.add(keyText(key));
            context.enqueue(key);
          },
        }),
    };
  }

  /** True once after a set was woken for its counts alone. */
  take(key: ObjectKey): boolean {
    const id = keyText(key);
    const [isCounted, isChanged] = [this.#counted.delete(id), this.#changed.delete(id)];
    return isCounted && !isChanged;
  }

  /** The present variants of a set; undefined before they are followed. */
  of(uid: string): Counts | undefined {
    return this.#variants === undefined ? undefined : countVariants(this.#variants.byIndex(OWNER, uid));
  }

  /** The message that variants of a set fail; undefined if none does. */
  failureOf(uid: string): string | undefined {
    return this.#variants === undefined ? undefined : describeFailing(this.#variants.byIndex(OWNER, uid));
  }

  #schedule(key: ObjectKey, context: SourceContext<ObjectKey>): void {
    const id = keyText(key);
    if (this.#timers.has(id)) return;
    const cancel = this.#clock.schedule(PAUSE_MS, () => {
      this.#timers.delete(id);
      this.#counted.add(id);
      context.enqueue(key);
    });
    this.#timers.set(id, cancel);
  }
}

export function countVariants(variants: Iterable<PackageVariant>): Counts {
  const counts = { total: 0, ready: 0, waiting: 0, failing: 0 };
  for (const variant of variants) {
    counts.total += 1;
    const state = stateOf(variant);
    if (state !== undefined) counts[state] += 1;
  }
  return counts;
}

/** How many variants fail, and the reason of one of them; undefined if none does. */
export function describeFailing(variants: readonly PackageVariant[]): string | undefined {
  const failing = variants.filter((variant) => stateOf(variant) === 'failing');
  const named = failing.reduce<PackageVariant | undefined>(
    (first, one) => (first === undefined || one.metadata.name < first.metadata.name ? one : first),
    undefined,
  );
  if (named === undefined) return undefined;
  const { name, generation } = named.metadata;
  const reason = conditionMessage(generation, named.status);
  return `${failing.length} of ${variants.length} variants fail, such as ${name}: ${reason}`;
}

function stateOf({ metadata, status }: PackageVariant): 'ready' | 'waiting' | 'failing' | undefined {
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready === undefined || ready.observedGeneration !== metadata.generation) return undefined;
  if (ready.status === 'True') return waitsIn(ready.message) === undefined ? 'ready' : 'waiting';
  return ready.reason === WAITING ? 'waiting' : 'failing';
}
