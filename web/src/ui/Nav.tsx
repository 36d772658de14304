import { Link, useRoute } from "wouter";
import { PLACES, type Place, placesOf } from "../places";
import { preload } from "../routes";
import { color } from "../state";
import { useMedia } from "../use/useMedia";
import { useSession } from "../use/useSession";
import { type Badge, useBadges } from "./useBadges";

/** The ways to the pages. Between a phone and a desk only the drawings are shown, and their names on pointing. */
export function Nav({ isRail = true }: { readonly isRail?: boolean }) {
  const badges = useBadges();
  const { pages } = useSession();
  return (
    <ul className="flex flex-col gap-0.5">
      {[...PLACES, ...placesOf(pages)].map((place) => (
        <li key={place.path}>
          <NavLink place={place} badge={badges[place.path]} isRail={isRail} />
        </li>
      ))}
    </ul>
  );
}

interface NavLinkProps {
  readonly place: Place;
  readonly badge: Badge | undefined;
  readonly isRail: boolean;
}

function NavLink({ place, badge, isRail }: NavLinkProps) {
  const [isExact] = useRoute(place.path);
  const [isBelow] = useRoute(`${place.path}/*`);
  const isHere = isExact || (place.path !== "/" && isBelow);
  const isNameless = useMedia("(width < 64rem)") && isRail;
  const Icon = place.icon;
  return (
    <Link
      href={place.path}
      onPointerEnter={() => preload(place.path)}
      onFocus={() => preload(place.path)}
      aria-current={isHere ? "page" : undefined}
      data-tip={isNameless ? place.name : undefined}
      aria-keyshortcuts={place.letter === undefined ? undefined : `g ${place.letter}`}
      className="nav-link relative flex h-8 items-center gap-2.5 rounded-md px-2.5 text-dim hover:bg-hover hover:text-fg aria-[current=page]:bg-panel2 aria-[current=page]:font-medium aria-[current=page]:text-fg"
    >
      <Icon size={15} strokeWidth={1.8} aria-hidden="true" className="shrink-0" />
      <span className={isRail ? "max-lg:sr-only" : ""}>{place.name}</span>
      {badge !== undefined && (
        <span
          data-tip={`${badge.count} ${badge.says}`}
          className={`ml-auto font-medium text-[11px] tabular-nums ${isRail ? "max-lg:absolute max-lg:top-0 max-lg:right-1 max-lg:text-[10px]" : ""}`}
          style={{ color: color(badge.look) }}
        >
          {badge.count > 999 ? "999+" : badge.count}
          <span className="sr-only"> {badge.says}</span>
        </span>
      )}
    </Link>
  );
}
