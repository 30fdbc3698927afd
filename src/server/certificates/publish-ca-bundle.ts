import type { Client } from '../../resource/client/client.ts';
import { apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import { caBundleOf, type ServingCertificates } from './serving-certificates.ts';

/**
 * Writes the authorities to trust into an APIService, unless it has them: from then on the aggregator of the cluster accepts the server. The
 * user of the client may get and patch it. NotFound if it is not installed.
 */
export async function publishCaBundle(
  client: Client,
  apiService: string,
  certificates: ServingCertificates,
): Promise<void> {
  const caBundle = Buffer.from(caBundleOf(certificates)).toString('base64');
  const { spec } = await client.get(apiServiceKind, { name: apiService });
  if (spec.caBundle !== caBundle) await client.patch(apiServiceKind, { name: apiService }, { spec: { caBundle } });
}
