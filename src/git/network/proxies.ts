/** The proxies that the environment of this process names, as curl reads them. */
export function proxyVariables(): { readonly http: string; readonly https: string; readonly none: string } {
  const of = (name: string) => process.env[name] ?? process.env[name.toUpperCase()] ?? '';
  return { http: of('http_proxy'), https: of('https_proxy') || of('http_proxy'), none: of('no_proxy') };
}

/** True if some requests go through a proxy. */
export function usesProxy(): boolean {
  const { http, https } = proxyVariables();
  return http !== '' || https !== '';
}
