import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import type { PackageVariantSet } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { messagesOf, type ObjectExplanation, stateOf } from '../package-variant/describe-variant.ts';
import { countVariants, describeFailing, VARIANTS_FAILING } from './variant-counts.ts';

/** Variants that are named. */
const MAX_NAMED = 10;
const UP_TO_DATE = 'up to date';

/** What a set makes, and which of its variants are not up to date, by their reasons. */
export function describeSet(
  { metadata, spec, status }: PackageVariantSet,
  variants: readonly PackageVariant[],
): ObjectExplanation {
  const { total, ready, waiting, failing } = countVariants(variants);
  const others = variants.filter((one) => stateOf(one.metadata.generation, one.status) !== UP_TO_DATE);
  const named = others.slice(0, MAX_NAMED);
  const rest = others.length - named.length;
  return {
    subject: `PackageVariantSet ${metadata.name}`,
    state: stateOfSet(stateOf(metadata.generation, status), variants),
    reasons: [
      `it makes variants of ${spec.upstream.repo}/${spec.upstream.package} for its targets, ${spec.maxTargets} at most${spec.maxDrafts === undefined ? '' : ` and with ${spec.maxDrafts} open drafts at most`}`,
      `variants: ${total}, of which ${ready} up to date, ${waiting} waiting, ${failing} failing`,
      ...messagesOf(metadata.generation, status),
      ...named.map((one) => `${one.metadata.name}: ${messagesOf(one.metadata.generation, one.status).join('; ')}`),
      ...(rest > 0 ? [`and ${rest} more variants that are not up to date`] : []),
    ],
    next: named.slice(0, 1).map((one) => `packagevariant/${one.metadata.name}`),
  };
}

/** The state of a set that was carried out is that of its variants, which its conditions follow a moment later. */
function stateOfSet(own: string, variants: readonly PackageVariant[]): string {
  if (own !== UP_TO_DATE) return own;
  const { total, ready } = countVariants(variants);
  if (total === 0) return 'no variants';
  if (describeFailing(variants) !== undefined) return `not ready (${VARIANTS_FAILING})`;
  return ready === total ? UP_TO_DATE : `in progress (${ready} of ${total} variants up to date)`;
}
