import { z } from 'zod';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { Authorities } from './authorities.ts';

/** Which proxy may name the user of a request, and in which headers. */
export interface RequestHeaderTrust {
  readonly authorities: Authorities;
  /** Common names of its certificate. Empty: any. */
  readonly allowedNames: readonly string[];
  /** In lower case; the first that a request has counts. */
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraPrefixes: readonly string[];
}

/** Whom a cluster trusts to authenticate the users of its extension servers. */
export interface ClusterTrust {
  /** Undefined: no header is read. */
  readonly requestHeader: RequestHeaderTrust | undefined;
  /** Issue the certificates of users. */
  readonly clientAuthorities: Authorities;
  /** Settings that are ignored, with the reason. */
  readonly problems: readonly string[];
}

export const NO_TRUST: ClusterTrust = {
  requestHeader: undefined,
  clientAuthorities: Authorities.NONE,
  problems: [],
};

const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const listOfTexts = z.array(z.string());

/**
 * Reads the data of ConfigMap `kube-system/extension-apiserver-authentication`, which a kube-apiserver publishes for its extension servers.
 * InvalidInput if a value cannot be read: then none of it is used.
 */
export function parseClusterTrust(data: Readonly<Record<string, string>>): ClusterTrust {
  const texts = (key: string) => readTexts(key, data[key] ?? '');
  const headers = (key: string) => readHeaders(key, texts(key));
  const authorities = (key: string) => readAuthorities(key, data[key] ?? '');
  const clientAuthorities = authorities('client-ca-file');
  const requestHeader: RequestHeaderTrust = {
    authorities: authorities('requestheader-client-ca-file'),
    allowedNames: texts('requestheader-allowed-names'),
    usernameHeaders: headers('requestheader-username-headers'),
    uidHeaders: headers('requestheader-uid-headers'),
    groupHeaders: headers('requestheader-group-headers'),
    extraPrefixes: headers('requestheader-extra-headers-prefix'),
  };
  if (requestHeader.authorities.isEmpty || requestHeader.usernameHeaders.length === 0)
    return { requestHeader: undefined, clientAuthorities, problems: [] };
  if (requestHeader.allowedNames.length === 0 && requestHeader.authorities.overlaps(clientAuthorities)) {
    const problem =
      'the aggregator cannot be distinguished from users, since requestheader-client-ca-file and client-ca-file have an authority in common and requestheader-allowed-names is empty: requests through the aggregator are refused; set --requestheader-allowed-names of kube-apiserver';
    return { requestHeader: undefined, clientAuthorities, problems: [problem] };
  }
  return { requestHeader, clientAuthorities, problems: [] };
}

function readTexts(key: string, text: string): readonly string[] {
  if (text === '') return [];
  try {
    return listOfTexts.parse(JSON.parse(text));
  } catch (error) {
    throw new SluiceError('InvalidInput', `${key} is not a list of texts in JSON`, { cause: error });
  }
}

function readHeaders(key: string, names: readonly string[]): readonly string[] {
  const headers = names.map((name) => name.trim().toLowerCase());
  // A prefix without characters would take every header for an attribute of the user.
  const wrong = headers.find((name) => !HEADER.test(name));
  if (wrong !== undefined)
    throw new SluiceError('InvalidInput', `${key} contains ${JSON.stringify(wrong)}, which is no name of a header`);
  return headers;
}

function readAuthorities(key: string, pem: string): Authorities {
  try {
    return Authorities.parse(pem);
  } catch (error) {
    throw new SluiceError('InvalidInput', `${key}: ${messageOf(error)}`, { cause: error });
  }
}
