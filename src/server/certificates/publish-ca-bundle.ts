import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { validatingWebhookConfigurationKind } from '../../resource/kinds/admissionregistration/validating-webhook-configuration.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import type { ObjectMeta } from '../../resource/object/object.ts';
import { caBundleOf, type ServingCertificates } from './serving-certificates.ts';

/** The Service of a server. */
export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** Annotations by which cert-manager writes the authorities into an object: it would undo what Sluice writes. */
const INJECTED = /^cert-manager\.io\/inject-(?:ca-from|ca-from-secret|apiserver-ca)$/;

/**
 * Writes the authorities to trust into an APIService, unless it has them: from then on the aggregator of the cluster accepts the server. The
 * user of the client may get and patch it. Returns whether it was written. NotFound if it is not installed, Refused if it names the Service
 * of another server, whose authorities Sluice must not replace.
 */
export async function publishCaBundle(
  client: Client,
  apiService: string,
  own: ServiceName,
  certificates: ServingCertificates,
): Promise<boolean> {
  const caBundle = encoded(certificates);
  const { metadata, spec } = await client.get(apiServiceKind, { name: apiService });
  if (!isOwnService(spec.service, own)) throw foreign('APIService', apiService, spec.service, own);
  if (spec.caBundle === caBundle || isInjected(metadata)) return false;
  await client.patch(apiServiceKind, { name: apiService }, { spec: { caBundle } });
  return true;
}

/** The same for the webhooks of a ValidatingWebhookConfiguration, if there is one. Conflict if another writer is faster. */
export async function publishWebhookCaBundle(
  client: Client,
  name: string,
  own: ServiceName,
  certificates: ServingCertificates,
): Promise<boolean> {
  const caBundle = encoded(certificates);
  const found = await client.find(validatingWebhookConfigurationKind, { name });
  if (found === undefined || isInjected(found.metadata)) return false;
  const { metadata, webhooks } = found;
  if (!webhooks?.length) return false;
  if (!webhooks.some(({ clientConfig }) => isOwnService(clientConfig.service, own)))
    throw foreign('ValidatingWebhookConfiguration', name, webhooks[0]?.clientConfig.service, own);
  const isStale = ({ clientConfig }: (typeof webhooks)[number]) =>
    isOwnService(clientConfig.service, own) && clientConfig.caBundle !== caBundle;
  if (!webhooks.some(isStale)) return false;
  const trusting = webhooks.map((webhook) =>
    isStale(webhook) ? { ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } } : webhook,
  );
  // A merge patch replaces the whole list, so that a change by another writer meanwhile must not be lost.
  const { resourceVersion } = metadata;
  const patch = { metadata: { resourceVersion }, webhooks: trusting };
  await client.patch(validatingWebhookConfigurationKind, { name }, patch);
  return true;
}

type NamedService = { readonly namespace?: string | undefined; readonly name?: string | undefined } | null | undefined;

/** True if an object names the Service of this server. */
export function isOwnService(service: NamedService, own: ServiceName): boolean {
  return service?.namespace === own.namespace && service.name === own.name;
}

function foreign(kind: string, name: string, service: NamedService, own: ServiceName): SluiceError {
  const found = service ? `Service ${service.namespace ?? ''}/${service.name ?? ''}` : 'no Service';
  const mine = `${own.namespace}/${own.name}`;
  return new SluiceError(
    'Refused',
    `${kind} ${name} names ${found}, not ${mine} of this server, and stays as it is: a cluster has one installation; remove one of the two, or let it name ${mine}`,
  );
}

function encoded(certificates: ServingCertificates): string {
  return Buffer.from(caBundleOf(certificates)).toString('base64');
}

function isInjected({ annotations = {} }: ObjectMeta): boolean {
  return Object.keys(annotations).some((name) => INJECTED.test(name));
}
