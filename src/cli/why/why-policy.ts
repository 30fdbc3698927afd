import { describePolicy } from '../../../controllers/approval/describe-policy.ts';
import type { ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { unlessMissing } from '../../foundation/sluice-error.ts';
import type { SourcedPolicy } from '../../package/store/policy-objects.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import {
  POLICIES_CONDITION,
  type PolicyInForce,
  policyFolderOf,
  type Repository,
  repositoryKind,
} from '../../resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../resource/object/condition.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { withStatus } from '../access/repository-status.ts';
import { missingObject } from './expect-object.ts';
import { withUnknownNames } from './unknown-names.ts';

/** A policy in a folder that a Repository names, as the status of the Repository reports it. */
interface Found {
  readonly repository: Stored<Repository>;
  readonly policy: PolicyInForce;
}

/**
 * Explains a PackagePolicy: an object, or one from a repository; `<repository>/<name>` means that of the repository. Policies of the same
 * name are next steps.
 */
export async function explainPolicy(access: Access, text: string): Promise<ObjectExplanation> {
  const { client, namespace, clock } = access;
  const [name = '', repository] = text.split('/', 2).reverse();
  const [object, all] = await Promise.all([
    repository === undefined ? client.find(packagePolicyKind, { namespace, name }) : undefined,
    client.list(repositoryKind, { namespace }),
  ]);
  const read = await Promise.all(
    all.items
      .filter((one) => policyFolderOf(one) !== undefined)
      .filter(({ metadata }) => repository === undefined || metadata.name === repository)
      .map(async (one) => (await withStatus(access, one)).object),
  );
  const known = read.flatMap((one) => (one.status?.policies ?? []).map((policy) => ({ repository: one, policy })));
  const same = known.filter(({ policy }) => policy.name === name);
  const [first] = same;
  const policy = object ?? (first === undefined ? undefined : sourced(first));
  if (policy === undefined) {
    const names = (await client.list(packagePolicyKind, { namespace })).items.map(({ metadata }) => metadata.name);
    throw missingObject(
      access,
      packagePolicyKind,
      text,
      [...new Set([...names, ...known.map(({ policy }) => policy.name)])],
      read.flatMap(problemOf),
    );
  }
  const [revisions, variants] = await Promise.all([
    client.list(packageRevisionKind, { namespace }),
    unlessMissing(client.list(packageVariantKind, { namespace })),
  ]);
  const from = { revisions: revisions.items, repositories: all.items, variants: variants?.items ?? [] };
  const explanation = describePolicy(policy, from, clock.now());
  const isOfRepository = object === undefined && first !== undefined;
  const unshown = 'its text is not shown, since the policies of the Repository are too large: read the file';
  const further = same
    .filter((one) => !isOfRepository || one !== first)
    .map((one) => `packagepolicy/${reference(one)}`);
  const { selector } = policy.spec;
  return withUnknownNames(
    access,
    {
      ...explanation,
      reasons: [
        ...(isOfRepository && first.policy.spec === undefined
          ? [...explanation.reasons.slice(0, 1), unshown]
          : explanation.reasons),
        ...(isOfRepository ? problemOf(first.repository) : []),
      ],
      next: [...explanation.next, ...further],
    },
    { ...selector },
  );
}

function reference({ repository, policy }: Found): string {
  return `${repository.metadata.name}/${policy.name}`;
}

function sourced({ repository, policy: { name, file, commit, spec } }: Found): SourcedPolicy {
  const { metadata } = repository;
  const complete = packagePolicyKind.complete({
    metadata: { name, ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) },
    spec: { ...spec },
  });
  const origin = { name, file, commit, repository: metadata.name, branch: repository.spec.git?.branch ?? 'main' };
  return { ...complete, metadata: { ...complete.metadata, name: `${name} of Repository ${metadata.name}` }, origin };
}

/** Why policies on the branch do not count, if they do not. */
function problemOf({ metadata, status }: Stored<Repository>): string[] {
  const valid = findCondition(status?.conditions, POLICIES_CONDITION);
  return valid?.status === 'False'
    ? [`the policies of Repository ${metadata.name} are not valid: ${valid.message}`]
    : [];
}
