// Draws each .chart from the options in the JSON after it, in the colours of the style sheet, which are others in the dark.
"use strict";
(() => {
	// Tooltips are drawn on the canvas: as HTML they would need styles that the page's policy forbids.
	const whole = (n) => Number(n).toLocaleString("en");

	// Addresses, paths and browsers are often told apart by their ends: what is too long loses its middle.
	const ruler = document.createElement("canvas").getContext("2d");
	function fitted(text, width, font) {
		ruler.font = `${font.fontSize}px ${font.fontFamily}`;
		const signs = [...text];
		let shown = text;
		for (let kept = Math.min(signs.length - 1, 300); kept > 1 && ruler.measureText(shown).width > width; kept--) {
			shown = `${signs.slice(0, Math.ceil(kept / 2)).join("")}…${signs.slice(-Math.floor(kept / 2)).join("")}`;
		}
		return shown;
	}

	function draw(place) {
		const styles = getComputedStyle(document.documentElement);
		const colour = (name) => styles.getPropertyValue(name).trim();
		const font = { color: colour("--soft"), fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 };
		const axis = {
			axisLine: { lineStyle: { color: colour("--line") } }, axisTick: { show: false }, axisLabel: font,
			splitLine: { lineStyle: { color: colour("--line") } },
		};
		const given = JSON.parse(place.nextElementSibling.textContent);
		const bars = given.series[0].type === "bar";
		const option = {
			series: given.series.map((s, i) => bars ? {
				...s, barWidth: 8, itemStyle: { color: colour("--c1"), borderRadius: [0, 3, 3, 0] },
				label: { ...font, show: true, position: "right", formatter: (p) => whole(p.value) },
			} : {
				...s, color: colour(given.colours[i]), showSymbol: false, lineStyle: { width: 2 }, areaStyle: { opacity: 0.05 },
				emphasis: { disabled: true }, smooth: 0.2, smoothMonotone: "x",
			}),
			textStyle: { fontFamily: font.fontFamily },
			animation: false,
			grid: {
				left: 0, right: bars ? 48 : 8, top: bars ? 8 : 34, outerBoundsMode: bars ? "none" : "same", outerBoundsContain: "axisLabel",
				bottom: bars ? `${100 * (1 - given.series[0].data.length / 8)}%` : 0, // bars are as far apart in all charts
			},
			legend: { show: !bars, left: 0, top: 0, icon: "roundRect", itemWidth: 10, itemHeight: 10, itemGap: 16, type: "scroll", textStyle: font },
			tooltip: {
				renderMode: "richText", trigger: "axis", axisPointer: { type: bars ? "shadow" : "line", lineStyle: { color: colour("--soft") } },
				valueFormatter: whole, backgroundColor: colour("--card"), borderColor: colour("--line"), textStyle: { ...font, color: colour("--text") },
				confine: true,
			},
			xAxis: bars ? { type: "value", show: false } : { ...axis, type: "category", boundaryGap: false, data: given.xAxis[0].data, splitLine: { show: false } },
			yAxis: bars ? {
				...axis, type: "category", data: given.yAxis[0].data, axisLine: { show: false },
				// In full width above its bar; asked for again when the chart gets another size.
				axisLabel: {
					...font, color: colour("--text"), inside: true, margin: 0, padding: [0, 0, 10, 0], verticalAlign: "bottom", interval: 0,
					formatter: (name) => fitted(name, place.clientWidth, font),
				},
				z: 3, // bars would be drawn over it
			} : { ...axis, type: "value", minInterval: 1, axisLine: { show: false }, axisLabel: { ...font, formatter: whole } },
		};
		const chart = echarts.getInstanceByDom(place) ?? echarts.init(place);
		chart.setOption(option, true);
	}

	const places = [...document.querySelectorAll(".chart")];
	const drawAll = () => places.forEach(draw);
	drawAll();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	const resized = new ResizeObserver((entries) => entries.forEach((e) => echarts.getInstanceByDom(e.target)?.resize()));
	places.forEach((place) => resized.observe(place));
})();
