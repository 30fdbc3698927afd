/** The registry that kpt uses for images without one. */
const DEFAULT_REGISTRY = 'ghcr.io/kptdev/krm-functions-catalog';

/** The parts of an image's name as it is written. */
export interface ImageName {
  /** Registry and path; without a registry if none is written. */
  readonly repository: string;
  /** Last part of the repository. */
  readonly name: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** Splits the name of an image. Accepts any text; the code that runs an image checks its name. */
export function parseImageName(image: string): ImageName {
  const at = image.indexOf('@');
  const [named, digest] = at === -1 ? [image, undefined] : [image.slice(0, at), image.slice(at + 1)];
  const lastSlash = named.lastIndexOf('/');
  const colon = named.indexOf(':', lastSlash + 1);
  const [repository, tag] = colon === -1 ? [named, undefined] : [named.slice(0, colon), named.slice(colon + 1)];
  return { repository, name: repository.slice(lastSlash + 1), tag, digest };
}

/**
 * Completes an image as kpt does: with kpt's registry if it has none, with the `tag` of the pipeline entry in place of its own tag
 * and digest, and with the tag `latest` if it has neither.
 */
export function completeImage(image: string, entryTag: string | undefined): string {
  const { repository, tag, digest } = parseImageName(image);
  const full = repository.includes('/') ? repository : `${DEFAULT_REGISTRY}/${repository}`;
  if (entryTag !== undefined && entryTag !== '') return `${full}:${entryTag}`;
  const suffix = `${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
  return suffix === '' ? `${full}:latest` : `${full}${suffix}`;
}

/** The function with this registry in front of an image that names none; unchanged without a registry. */
export function withRegistry<Named extends { readonly image?: string | undefined }>(
  named: Named,
  registry: string | undefined,
): Named {
  const { image = '' } = named;
  if (registry === undefined || image === '' || parseImageName(image).repository.includes('/')) return named;
  return { ...named, image: `${registry}/${image}` };
}

/** The image with this digest in place of its tag. */
export function pinnedImage(image: string, digest: string): string {
  return `${parseImageName(image).repository}@${digest}`;
}
