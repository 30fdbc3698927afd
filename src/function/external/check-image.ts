import { SluiceError } from '../../foundation/sluice-error.ts';
import { parseImageName } from '../catalog/image-name.ts';

/** The grammar of the OCI distribution specification; each pattern is linear, and is matched against one part. */
const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?$/i;
const COMPONENT = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_IMAGE_CHARACTERS = 512;

/** True if an image is pinned by a digest, which no registry can change. */
export function isPinned(image: string): boolean {
  return DIGEST.test(parseImageName(image).digest ?? '');
}

/** Checks the name of an image, so that no option or other argument reaches a container engine in its place. Throws InvalidInput. */
export function checkImage(image: string): void {
  const { repository, tag, digest } = parseImageName(image);
  const parts = repository.split('/');
  const hasHost = parts.length > 1 && /[.:]|^localhost$/.test(parts[0] ?? '');
  const valid =
    image.length <= MAX_IMAGE_CHARACTERS &&
    (digest === undefined || DIGEST.test(digest)) &&
    (tag === undefined || TAG.test(tag)) &&
    parts.every((part, at) => (at === 0 && hasHost ? HOST : COMPONENT).test(part));
  if (!valid)
    throw new SluiceError(
      'InvalidInput',
      `image ${JSON.stringify(image.slice(0, 300))} is not a valid name: it must read registry/name:tag or registry/name@sha256:<64 hexadecimal digits>`,
    );
}
