import type { Explainer } from '../../src/package/api/explain/explainer.ts';
import {
  APPROVAL_POLICY_ANNOTATION,
  AUTO_LIFECYCLE_ANNOTATION,
} from '../../src/package/model/revision/lifecycle-annotations.ts';

/** Annotations of the Kptfile that have no effect because no policy enables them. */
export const annotationExplainer: Explainer = {
  explain({ evaluation: { record, revision, policy } }) {
    if (policy.kptfileApprovals || !['Draft', 'Proposed'].includes(revision.lifecycle)) return {};
    const { annotations = {} } = revision.kptfile?.metadata ?? {};
    const ignored = [AUTO_LIFECYCLE_ANNOTATION, APPROVAL_POLICY_ANNOTATION].filter(
      (key) => Object.hasOwn(annotations, key) && record.annotations?.[key] === undefined,
    );
    if (ignored.length === 0) return {};
    const message = `${ignored.join(' and ')} in the Kptfile has no effect: no policy enables it (spec.kptfileApprovals)`;
    return { reasons: [{ reason: 'NotEnabled', message }] };
  },
};
