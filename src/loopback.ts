import { BlockList, isIP } from "node:net";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether only this machine itself can reach what listens on `host`. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return /^localhost\.?$/i.test(host);
  return loopback.check(host, family === 4 ? "ipv4" : "ipv6");
}
