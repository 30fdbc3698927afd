import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Explainer } from '../../src/package/api/explain/explainer.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageVariantKind, waitsIn } from '../../src/resource/kinds/porch/package-variant.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { mergeReportsOf } from './merge-reports.ts';
import { ownersOf } from './plan-variant.ts';

/** The variant that keeps an open revision up to date, and what prevents that. */
export function packageVariantExplainer({ client }: { readonly client: Client }): Explainer {
  return {
    async explain({ evaluation: { revision } }) {
      if (revision.lifecycle !== 'Draft' && revision.lifecycle !== 'Proposed') return {};
      const owner = ownersOf(revision).find(({ kind, controller }) => kind === packageVariantKind.kind && controller);
      if (owner?.name === undefined) return {};
      if (owner.namespace !== undefined && owner.namespace !== revision.namespace) {
        // A user of this namespace need not be allowed to read more of it.
        const message = `it belongs to PackageVariant ${owner.namespace}/${owner.name}, since that namespace has registered the repository too, or had; it is kept up to date there`;
        return { reasons: [{ reason: 'OwnedByPackageVariant', message }] };
      }
      const variant = await find(client, { namespace: revision.namespace, name: owner.name });
      if (variant === undefined || variant.metadata.uid !== owner.uid) {
        const message = `it belongs to PackageVariant ${owner.name}, which does not exist any more, so that nothing keeps it up to date`;
        return { reasons: [{ reason: 'PackageVariantMissing', message }] };
      }
      const { repo, package: path } = variant.spec.upstream;
      const ref = revision.kptfile?.upstreamLock?.git?.ref;
      const version = ref?.slice(ref.lastIndexOf('/') + 1);
      const [stalled, ready] = ['Stalled', 'Ready'].map((type) => findCondition(variant.status?.conditions, type));
      const waits = waitsIn(ready?.message);
      const keeps =
        waits === undefined
          ? `keeps it up to date with ${repo}/${path}${version === undefined ? '' : `, now ${version}`}`
          : `made it from ${repo}/${path}${version === undefined ? '' : ` ${version}`}; ${waits}`;
      const belongs = `it belongs to PackageVariant ${owner.name}, which ${keeps}`;
      const problem = stalled?.status === 'True' ? stalled : ready?.status === 'False' ? ready : undefined;
      const message = problem === undefined ? belongs : `${belongs}; this fails: ${problem.message}`;
      const reports = mergeReportsOf(variant.status).filter((report) => report.revision === revision.name);
      return {
        reasons: [
          { reason: 'OwnedByPackageVariant', message },
          ...reports.map((report) => ({ reason: report.type, message: report.message })),
        ],
      };
    },
  };
}

/** Undefined too for a cluster without the kind. */
async function find(client: Client, key: { readonly namespace: string; readonly name: string }) {
  try {
    return await client.find(packageVariantKind, key);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Unsupported')) return undefined;
    throw error;
  }
}
