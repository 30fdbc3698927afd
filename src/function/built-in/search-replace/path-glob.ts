import type { RE2JS } from 're2js';
import { linearRegex } from '../../../foundation/text/linear-regex.ts';

const TOKEN = /\*\*\/|\*\*|\*|\?|\[[!^]?[^\]/]+\]|\{|\}|,|\\.|./gsu;

/**
 * A glob for paths of files: `*` and `?` stop at slashes, `**` does not, `[a-z]` and `{one,two}` are choices. Throws InvalidInput that
 * names `where`.
 */
export function pathGlob(glob: string, where: string): RE2JS {
  let depth = 0;
  const regex = glob.replaceAll(TOKEN, (token) => {
    if (token === '**/') return '(?:.*/)?';
    if (token === '**') return '.*';
    if (token === '*') return '[^/]*';
    if (token === '?') return '[^/]';
    if (token === '{') {
      depth++;
      return '(?:';
    }
    if (token === '}' && depth > 0) {
      depth--;
      return ')';
    }
    if (token === ',' && depth > 0) return '|';
    if (token.length > 2 && token.startsWith('[')) return token.replace(/^\[!/, '[^');
    return escaped(token.length > 1 && token.startsWith('\\') ? token.slice(1) : token);
  });
  return linearRegex(`^(?:${regex})$`, where);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
