import type { Client } from '../../src/resource/client/client.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { type Action, PACKAGES, type Settings } from './actions.ts';
import { MAPPED, subjectOf } from './host.ts';

/** Required by the settings with a gate. */
export const GATE = 'example.com/Tested';

export async function createPolicy(client: Client, settings: Settings, api: string): Promise<void> {
  const approval = {
    ...(settings.quorum ? { quorum: { required: 2 } } : {}),
    ...(settings.forbidSelf ? { forbidSelfApproval: true } : {}),
  };
  await client.create(packagePolicyKind, {
    metadata: { name: 'review' },
    spec: {
      ...(settings.gate ? { requiredGates: [{ conditionType: GATE, approveOnly: true }] } : {}),
      ...(settings.quorum || settings.forbidSelf ? { approval } : {}),
      review: {
        forge: { provider: 'github', api, secretRef: { name: 'forge' } },
        publishOn: settings.publishOn,
        approvers: MAPPED.map((user) => ({ user, subject: subjectOf(user) })),
        ...(settings.batch ? { batch: {} } : {}),
        gateChecks: settings.gate ? [GATE] : [],
      },
    },
  });
}

/** Of all policies. */
export async function setPublishOn(client: Client, publishOn: Settings['publishOn']): Promise<void> {
  for (const { metadata } of (await client.list(packagePolicyKind, {})).items)
    await client.patch(packagePolicyKind, metadata, { spec: { review: { publishOn } } });
}

/** Other credentials, or the first or last team: of the one policy, or of a second one that then has one of the packages. */
export async function setAccess(
  client: Client,
  { secret, teams, splits }: Action & { readonly do: 'access' },
): Promise<void> {
  const key = (name: string) => ({ namespace: 'default', name });
  const review = {
    forge: { secretRef: { name: secret } },
    teams: teams ? [{ team: 'acme/reviewers', groups: ['reviewers'] }] : null,
  };
  const second = await client.find(packagePolicyKind, key('second'));
  if (!splits) {
    if (second !== undefined) await client.delete(packagePolicyKind, key('second'));
    await client.patch(packagePolicyKind, key('review'), { spec: { selector: null, review } });
    return;
  }
  if (second === undefined) {
    const [first, other] = PACKAGES;
    await client.patch(packagePolicyKind, key('review'), { spec: { selector: { packages: [first] } } });
    const { spec } = await client.get(packagePolicyKind, key('review'));
    await client.create(packagePolicyKind, {
      metadata: { name: 'second' },
      spec: { ...spec, selector: { packages: [other] } },
    });
  }
  await client.patch(packagePolicyKind, key('second'), { spec: { review } });
}
