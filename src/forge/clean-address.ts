import { cleanText } from '../foundation/text/clean-text.ts';
import { shorten } from '../foundation/text/shorten.ts';

const MAX_CHARACTERS = 500;

/** The address of a page as the host names it, without what could mislead where it is shown. */
export function cleanAddress(url: string): string {
  return shorten(cleanText(url).replaceAll(/\s+/g, ' '), MAX_CHARACTERS);
}
