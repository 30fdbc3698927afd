import type { Check } from './forge.ts';

/** The page of the first annotation of a check, else the page of its details; undefined without both. `files` is the page of the files of the commit. */
export function annotationLink(files: string, { annotations = [], url }: Check): string | undefined {
  const [first] = annotations;
  if (first === undefined) return url;
  return `${files}/${first.path.split('/').map(encodeURIComponent).join('/')}#L${first.line}`;
}
