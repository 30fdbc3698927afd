import type { Client } from '../../resource/client/client.ts';
import { validatingWebhookConfigurationKind } from '../../resource/kinds/admissionregistration/validating-webhook-configuration.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import type { ObjectMeta } from '../../resource/object/object.ts';
import { caBundleOf, type ServingCertificates } from './serving-certificates.ts';

/** Annotations by which cert-manager writes the authorities into an object: it would undo what Sluice writes. */
const INJECTED = /^cert-manager\.io\/inject-(?:ca-from|ca-from-secret|apiserver-ca)$/;

/**
 * Writes the authorities to trust into an APIService, unless it has them: from then on the aggregator of the cluster accepts the server. The
 * user of the client may get and patch it. NotFound if it is not installed.
 */
export async function publishCaBundle(
  client: Client,
  apiService: string,
  certificates: ServingCertificates,
): Promise<void> {
  const caBundle = encoded(certificates);
  const { metadata, spec } = await client.get(apiServiceKind, { name: apiService });
  if (spec.caBundle === caBundle || isInjected(metadata)) return;
  await client.patch(apiServiceKind, { name: apiService }, { spec: { caBundle } });
}

/** The same for all webhooks of a ValidatingWebhookConfiguration, if there is one. Conflict if another writer is faster. */
export async function publishWebhookCaBundle(
  client: Client,
  name: string,
  certificates: ServingCertificates,
): Promise<void> {
  const caBundle = encoded(certificates);
  const found = await client.find(validatingWebhookConfigurationKind, { name });
  if (found === undefined || isInjected(found.metadata)) return;
  const { metadata, webhooks } = found;
  if (!webhooks?.some(({ clientConfig }) => clientConfig.caBundle !== caBundle)) return;
  const trusting = webhooks.map((webhook) => ({ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } }));
  // A merge patch replaces the whole list, so that a change by another writer meanwhile must not be lost.
  const { resourceVersion } = metadata;
  const patch = { metadata: { resourceVersion }, webhooks: trusting };
  await client.patch(validatingWebhookConfigurationKind, { name }, patch);
}

function encoded(certificates: ServingCertificates): string {
  return Buffer.from(caBundleOf(certificates)).toString('base64');
}

function isInjected({ annotations = {} }: ObjectMeta): boolean {
  return Object.keys(annotations).some((name) => INJECTED.test(name));
}
