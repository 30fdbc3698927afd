/**
 * The certificate library, loaded when a certificate has to be made: it takes a tenth of a second. Its dependency injection
 * asks for decorator metadata, which nothing here has, so two functions that know of none are all it needs.
 */
export async function loadX509() {
  const metadata = Reflect as { getMetadata?: () => undefined; getOwnMetadata?: () => undefined };
  metadata.getMetadata ??= () => undefined;
  metadata.getOwnMetadata ??= () => undefined;
  return import('@peculiar/x509');
}
