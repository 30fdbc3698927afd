import { isMapping, isScalar, isSequence, type Mapping, textAt, type Value, valueAt } from '../yaml/yaml-value.ts';

/** The form of a value that sops encrypted: AES-256-GCM, a nonce of 32 bytes and a tag of 16 (getsops/sops, aes/cipher.go). */
const ENCRYPTED =
  /^ENC\[AES256_GCM,data:([A-Za-z0-9+/]+={0,2}),iv:([A-Za-z0-9+/]+={0,2}),tag:([A-Za-z0-9+/]+={0,2}),type:(?:str|int|float|bool|bytes|comment)\]$/;
const TAG_BYTES = 16;
/** The minimum of AES-GCM; sops itself writes more. */
const MIN_NONCE_BYTES = 12;

/** Fields with the key of a file, encrypted for each recipient. */
const RECIPIENTS = ['kms', 'gcp_kms', 'azure_kv', 'hc_vault', 'age', 'pgp'];

/** True for a value that sops encrypted. */
export function isEncryptedText(text: string): boolean {
  const [, data = '', nonce = '', tag = ''] = ENCRYPTED.exec(text) ?? [];
  return data !== '' && (bytesOf(nonce) ?? 0) >= MIN_NONCE_BYTES && bytesOf(tag) === TAG_BYTES && isBase64(data);
}

/**
 * True for an object with the metadata block of sops: an encrypted code that authenticates the file, and at least one recipient of the
 * key. Without these nothing can decrypt it, and its values only look encrypted.
 */
export function hasSopsBlock(object: Mapping): boolean {
  const mac = textAt(object, 'sops', 'mac') ?? '';
  const dates = textAt(object, 'sops', 'lastmodified') ?? '';
  if (!isEncryptedText(mac) || Number.isNaN(Date.parse(dates))) return false;
  const groups = valueAt(object, 'sops', 'key_groups');
  const places = [valueAt(object, 'sops'), ...(isSequence(groups) ? groups : [])];
  return places.some((place) => RECIPIENTS.some((name) => hasRecipient(valueAt(place, name))));
}

function hasRecipient(list: Value | undefined): boolean {
  const texts = ['enc', 'EncryptedKey'];
  return isSequence(list) && list.some((one) => isMapping(one) && texts.some((name) => isFilled(valueAt(one, name))));
}

function isFilled(value: Value | undefined): boolean {
  return isScalar(value) && value.text.trim() !== '';
}

/** The number of bytes that a base64 text encodes; undefined if it is not base64. */
function bytesOf(text: string): number | undefined {
  return isBase64(text) ? Buffer.from(text, 'base64').length : undefined;
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0;
}
