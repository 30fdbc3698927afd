import type { Check } from './forge.ts';

/** The page of the first annotation of a check; undefined without any. `files` is the page of the files of the commit. */
export function annotationLink(files: string, { annotations = [] }: Check): string | undefined {
  const [first] = annotations;
  if (first === undefined) return undefined;
  return `${files}/${first.path.split('/').map(encodeURIComponent).join('/')}#L${first.line}`;
}
