import { SluiceError } from '../../foundation/sluice-error.ts';
import type { HostRules } from '../../git/network/host-rules.ts';
import { checkRemoteUrl } from '../../git/network/remote-url.ts';
import { isOnThisMachine } from '../../git/open/open-location.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { notificationKind } from '../../resource/kinds/sluice/notification.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { analysisTemplateKind } from '../../resource/kinds/sluice/wave/analysis-template.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

/** A part of an object that says where Sluice connects to, and with which Secrets. */
interface Receiver {
  readonly field: string;
  readonly value: unknown;
  readonly url?: string | undefined;
  readonly secrets: readonly (string | undefined)[];
}

interface Reference {
  readonly name: string;
}

interface NotificationObject {
  readonly spec?: {
    readonly webhook?: Readonly<Record<'secretRef' | 'urlSecretRef' | 'caSecretRef', Reference | undefined>> & {
      readonly url?: string;
    };
    /** Of a DeliveryTarget. */
    readonly engine?: {
      readonly kubeconfigSecretRef?: Reference;
      readonly trigger?: { readonly url?: string; readonly secretRef?: Reference };
    };
    readonly git?: { readonly repo?: string; readonly branch?: string };
    readonly pullRequest?: { readonly forge?: { readonly api?: string; readonly secretRef?: Reference } };
    readonly commitStatus?: { readonly api?: string; readonly secretRef?: Reference };
    /** Of a PackagePolicy. */
    readonly review?: { readonly forge?: { readonly api?: string; readonly secretRef?: Reference } };
    /** Of a WavePlan. */
    readonly verification?: { readonly http?: { readonly url?: string } };
    /** Of an AnalysisTemplate. */
    readonly metrics?: readonly {
      readonly provider?: Readonly<Record<'prometheus' | 'http', MetricSource | undefined>>;
    }[];
  };
}

interface MetricSource {
  readonly address?: string;
  readonly url?: string;
  readonly secretRef?: Reference;
  readonly basicAuthSecretRef?: Reference;
  readonly caSecretRef?: Reference;
}

/**
 * Checks what Sluice sends to addresses that an object names: callers must be allowed to read the Secrets that it uses for them, and to use
 * addresses on the machine of the server (see checkGitLocation). Unchanged parts are not checked again.
 */
export async function checkReceivers(
  { user, kind, object, old }: PlannedWrite,
  authorizer: Authorizer,
  hosts: HostRules,
): Promise<void> {
  if (
    ![notificationKind, deliveryTargetKind, packagePolicyKind, analysisTemplateKind, wavePlanKind].some(
      (one) => one.group === kind.group && one.kind === kind.kind,
    )
  )
    return;
  const { name, namespace = '' } = object.metadata;
  const before = receiversOf(old as NotificationObject | undefined);
  const check = async (verb: string, about: { group: string; resource: string }, what: string, why: string) => {
    if (await isAllowed(authorizer, permission(user, verb, { ...about, namespace, name: what }))) return;
    const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${why}`;
    throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
  };
  for (const { field, value, url, secrets } of receiversOf(object as NotificationObject)) {
    if (sameValue(value, before.find((one) => one.field === field)?.value)) continue;
    const origin = url === undefined ? undefined : URL.parse(url)?.origin;
    if (origin !== undefined) {
      checkRemoteUrl(origin, hosts);
      const right = `the verb "use" on localrepositories.sluice.dev ${JSON.stringify(origin)}`;
      const why = `${field} is on the machine of the server and requires ${right}; use the address of another host, or get a role with that right`;
      if (isOnThisMachine(origin))
        await check('use', { group: 'sluice.dev', resource: 'localrepositories' }, origin, why);
    }
    for (const secret of secrets) {
      if (secret === undefined) continue;
      const why = `the Secret ${namespace}/${secret} is used by ${field}, and User ${JSON.stringify(user.name)} cannot read it; name one that you may read, or let a user who may read it write this`;
      await check('get', { group: '', resource: 'secrets' }, secret, why);
    }
  }
}

function receiversOf(object: NotificationObject | undefined): Receiver[] {
  const { webhook, commitStatus, engine, review, metrics, verification, git, pullRequest } = object?.spec ?? {};
  const sources = (metrics ?? []).map(({ provider }) => provider?.prometheus ?? provider?.http);
  return [
    ...sources.map((source, index) => ({
      ...{ field: `spec.metrics[${index}].provider`, value: source, url: source?.address ?? source?.url },
      secrets: [source?.secretRef?.name, source?.basicAuthSecretRef?.name, source?.caSecretRef?.name],
    })),
    ...(verification?.http === undefined
      ? []
      : [
          {
            ...{ field: 'spec.verification.http', value: verification.http, secrets: [] },
            // What is inserted is no part of the domain.
            url: verification.http.url?.replaceAll(/[{}]/g, ''),
          },
        ]),
    ...(engine === undefined
      ? []
      : [
          {
            ...{ field: 'spec.engine', value: engine, url: engine.trigger?.url },
            secrets: [engine.kubeconfigSecretRef?.name, engine.trigger?.secretRef?.name],
          },
        ]),
    ...(webhook === undefined
      ? []
      : [
          {
            ...{ field: 'spec.webhook', value: webhook, url: webhook.url },
            secrets: [webhook.secretRef?.name, webhook.urlSecretRef?.name, webhook.caSecretRef?.name],
          },
        ]),
    ...(commitStatus === undefined
      ? []
      : [
          {
            ...{ field: 'spec.commitStatus', value: commitStatus, url: commitStatus.api },
            secrets: [commitStatus.secretRef?.name],
          },
        ]),
    // Also what the Secret is used for: where it merges, and whether without a user.
    ...(pullRequest?.forge === undefined
      ? []
      : [
          {
            ...{ field: 'spec.pullRequest.forge', value: [pullRequest, git?.repo, git?.branch] },
            ...{ url: pullRequest.forge.api, secrets: [pullRequest.forge.secretRef?.name] },
          },
        ]),
    ...(review?.forge === undefined
      ? []
      : [
          {
            ...{ field: 'spec.review.forge', value: review.forge, url: review.forge.api },
            secrets: [review.forge.secretRef?.name],
          },
        ]),
  ];
}
